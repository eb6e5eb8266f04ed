"""Calibration of probabilities inside a privacy budget."""

from skdp.calibration._calibrated_classifier import DPCalibratedClassifierCV, ScoreCalibrator

__all__ = ["DPCalibratedClassifierCV", "ScoreCalibrator"]
