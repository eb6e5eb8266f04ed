"""Addresses of PostgreSQL: whatever libpq, or a careless writer, could see a secret in goes."""

import pickle
import sys
import traceback
from contextlib import suppress

import numpy as np
import pytest

from skdp import LedgerError, PrivacyAccountant
from skdp.__main__ import main
from skdp.ledger import open_ledger

# Parameters of libpq, none of which holds a secret.
HARMLESS_WORDS = {
    *("user", "host", "hostaddr", "port", "dbname", "service", "application_name"),
    *("connect_timeout", "target_session_attrs", "sslmode", "sslrootcert", "sslcert", "sslkey"),
    *("sslcrl", "channel_binding", "gssencmode"),
}
SECRETS = [
    "postgresql://u:s3cret@h/db",
    "postgresql://u:s3c#ret@h/db",
    "postgresql://u:s3c?ret@h/db",
    "postgresql://u:s3c%40ret@h/db",
    "postgres://u:s3c/ret@h/db",
    "postgresql://h1:5,u:s3cret@h/db",
    "postgresql://u%3As3cret@h/db",
    "postgresql://h/db?user=u&password=s3cret",
    "postgresql://u@h/db?p%61ssword=s3cret",
    "postgresql://u@h/db?PASSWORD=s3cret",
    "postgresql://u@h/db?application_name=a#&password=s3cret",
    "postgresql://u@h/db?sslpassword=s3cret",
    "postgresql://u@h/db?passfile=/s3cret",
    "postgresql://u@h/db?scram_client_key=s3cret",
    "postgresql://u@h/db?scram_server_key=s3cret",
    "postgresql://u@h/db?oauth_client_secret=s3cret",
    "postgresql://u@h/db?oauth_client_id=s3cret",
    "postgresql://u@h/db?options=-c%20app.key%3Ds3cret",
    "postgresql://u@h/db?options=-c%20x#?password%3Ds3cret",
    "postgresql://u@h/db?service=x%20password%3Ds3cret",
    "postgresql://u@h/db;password=s3cret",
    "postgresql://u@h/db?a=1;password=s3cret",
    "postgresql://u@h/db%20password%3Ds3cret",
    "postgresql:///?host=u:s3cret@h",
    "postgresql:///db?port=s3cret",
    "postgresql://u:12?user=s3cret@h/db",
    "postgresql://u:12/s3cret@h/db",
    "postgresql://u:12,s3cret@h/db",
    "postgresql://[u:s3cret]@h/db",
    "postgresql://u@h/db?application_name=a%26password%3Ds3cret",
    "postgresql://u@h/db?application_name=%2573%2533cret%253As3c",
    "POSTGRESQL://u:s3cret@h/db",
    " postgresql://u:s3cret@h/db",
    "postgresql:/u:s3cret@h/db",
    "postgresql//u:s3cret@h/db",
    "//u:s3cret@h/db",
    "u:p/s3cret@h/db",
    "postgresql+psycopg://u:s3cret@h/db",
    "u:s3cret@postgresql://h/db",
    "mysql://u:s3cret@h/db",
    "host=h user=u password=s3cret",
    "host=h user=u PASSWORD = s3cret",
    "Server=h;Uid=u;Pwd=s3cret",
    "Server=h;User Id=u;Password=s3cret",
    "dsn=h;token=s3cret",
    "file:budget.db?secret=s3cret",
]

HARMLESS = [
    "postgresql://u@h/db",
    "postgres://u@h:5432/db?sslmode=verify-full&sslrootcert=/etc/ssl/ca.pem",
    "postgresql:///db?host=/var/run/postgresql&user=u",
    "postgresql://u%40tenant@h1:5432,h2:5433/db?target_session_attrs=read-write",
    "postgresql://u@[::1]:5432/db?connect_timeout=5&application_name=team-a",
    "postgresql:///?service=budget",
    "postgresql://u@h/db?sslcert=/home/u/u.crt&sslkey=/home/u/u.key&channel_binding=require",
]


@pytest.mark.parametrize("address", SECRETS)
def test_an_address_that_may_hold_a_secret_is_refused_and_not_repeated(address, caplog, capsys):
    caplog.set_level(0)
    for use in (lambda: PrivacyAccountant(1.0, 0.0, ledger=address), lambda: open_ledger(address)):
        with pytest.raises((ValueError, LedgerError)) as refusal:
            use()
        error = refusal.value
        assert error.__cause__ is None
        assert error.__context__ is None
        told = "".join(traceback.format_exception_only(error)) + repr(vars(error)) + caplog.text
        assert "s3c" not in told + repr(pickle.dumps(error))
    with suppress(SystemExit):
        assert main(["ledger", "show", address]) == 1
    assert "s3c" not in "".join(capsys.readouterr()) + caplog.text


def unopened(address):
    """Return the handle that an unpickled model has, which has not opened its ledger."""
    restore, _ = PrivacyAccountant(1.0, 0.0).__reduce__()
    return restore(address, "default", None)


@pytest.mark.parametrize("address", HARMLESS)
def test_an_address_without_secrets_is_kept(address):
    handle = unopened(address)
    assert address.encode() in pickle.dumps(handle)
    assert pickle.loads(pickle.dumps(handle)) is handle
    assert "@" not in repr(handle)


def test_of_what_is_kept_libpq_reads_nothing_but_harmless_words():
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    words = "u h 12 :5 @ / / ? & = , : [::1] %3A %40 %2F %3F %25 . - user= password= port= host= "
    words = [*words.split(), "dbname=", "options=", " "]
    random, kept = np.random.default_rng(0), []
    for _ in range(20_000):
        address = "postgresql://" + "".join(random.choice(words, random.integers(9)))
        with suppress(ValueError):
            kept.append(open_ledger(address).address)
    for address in (*kept, *HARMLESS):
        with suppress(psycopg.ProgrammingError):
            found = psycopg.conninfo.conninfo_to_dict(address)
            assert found.keys() <= HARMLESS_WORDS, address
    assert len(kept) > 1000


def test_without_the_driver_addresses_are_checked_and_no_ledger_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match="needs psycopg"):
        PrivacyAccountant(1.0, 0.0, ledger="postgresql://u@h/db")
    with pytest.raises(ValueError, match="no password") as refusal:
        PrivacyAccountant(1.0, 0.0, ledger="postgresql://u:s3cret@h/db")
    assert "s3c" not in str(refusal.value)
    # A fitted model loads and predicts where the driver is not; its ledger cannot be used.
    data = pickle.dumps(unopened("postgresql://u@h/db"))
    with pytest.raises(LedgerError, match="needs psycopg"):
        assert pickle.loads(data).epsilon_spent


def test_a_password_of_the_environment_stands_in_no_error(monkeypatch):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    monkeypatch.setenv("PGPASSWORD", "s3cret")
    with pytest.raises(LedgerError, match="cannot be used") as refusal:
        PrivacyAccountant(1.0, 0.0, ledger="postgresql:///db?host=/nowhere")
    # The driver's error holds its connection, and that the password.
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u%3Ahunter2@h/db?user=u",
        "postgresql://u@h/db?options=-c%20app.secret%3Dhunter2!&options=",
        "postgresql://u@h/hunter2%21?dbname=db",
        "postgresql://u@hunter2%21/db?host=h",
        "postgresql://u:hunter2\udc80@h/db",
        "host=h sslpassword=hunter2",
        "user=u pass word=hunter2",
        "u:hunter2@h/db",
        b"postgresql://u:hunter2@h/db",
        {"password": "hunter2"},
    ],
)
def test_no_secret_is_kept_or_repeated(address):
    with pytest.raises((ValueError, LedgerError)) as refused:
        PrivacyAccountant(1.0, 0.0, ledger=address)
    assert "hunter2" not in repr(refused.value) and refused.value.__context__ is None
