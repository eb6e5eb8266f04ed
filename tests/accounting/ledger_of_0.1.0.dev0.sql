BEGIN TRANSACTION;
CREATE TABLE records (
    sequence INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
);
INSERT INTO "records" VALUES(1,'people','open','{"composition":"basic","delta":0.0001,"epsilon":3.0,"max_rows":1,"missing_ids":"error","rdp_order":null,"relation":"add_remove","unit":"row"}','f20cda43e2798b70693885ddf0dcbc3f43ca4bef7f15cc1f0629e8a5f306e899');
INSERT INTO "records" VALUES(2,'people','charge','{"delta":1e-05,"epsilon":1.0,"event":"{\"events\":[{\"epsilon\":0.4,\"type\":\"Laplace\"},{\"count\":11,\"event\":{\"noise_multiplier\":20.68205679377798,\"type\":\"Gaussian\"},\"type\":\"Repeated\"},{\"epsilon\":0.03,\"type\":\"Laplace\"}],\"type\":\"Composed\"}","label":"DPLogisticRegression","part":null,"seeded":false,"time":"2026-11-23T15:48:44+00:00","version":"0.1.0.dev0"}','84a0d35358504e3391c56c06c8c4f7728e6fd3d2e94d3a758f1d90caa0e96d49');
INSERT INTO "records" VALUES(3,'people','charge','{"delta":0.0,"epsilon":0.5,"event":"{\"epsilon\":0.5,\"type\":\"Laplace\"}","label":"DPStandardScaler","part":null,"seeded":false,"time":"2026-11-23T15:48:44+00:00","version":"0.1.0.dev0"}','c48a2a61dae8b9dac223935ea76281b856f1e15315cde0dee5bf2f6fb434cd36');
INSERT INTO "records" VALUES(4,'people','charge','{"delta":0.0,"epsilon":0.25,"event":"{\"epsilon\":0.25,\"type\":\"PureDP\"}","label":"by part","part":{"by_index":false,"index":0,"partition":"site","parts":2},"seeded":false,"time":"2026-11-23T15:48:45+00:00","version":"0.1.0.dev0"}','ebf0b0615c107364d47a29edea7c11b5e5d73bb3cc9050bfb47fdf351a1c6957');
INSERT INTO "records" VALUES(5,'people','charge','{"delta":0.0,"epsilon":0.25,"event":"{\"epsilon\":0.25,\"type\":\"PureDP\"}","label":"by part","part":{"by_index":false,"index":1,"partition":"site","parts":2},"seeded":false,"time":"2026-11-23T15:48:45+00:00","version":"0.1.0.dev0"}','2e3f7322c6bb5f8fca34c009168bd296dae22f6d1e8eec0f406e655b470d07c7');
INSERT INTO "records" VALUES(6,'people','charge','{"delta":1e-06,"epsilon":0.5,"event":"{\"delta\":1e-06,\"epsilon\":0.5,\"type\":\"ApproximateDP\"}","label":"for later","part":null,"seeded":false,"time":"2026-11-23T15:48:45+00:00","version":"0.1.0.dev0"}','b8170cacca34d6d92bcb285685fbc28808f57ab63ca359dfe37aca722d1db868');
INSERT INTO "records" VALUES(7,'people (reserved at 6)','open','{"composition":"basic","delta":1e-06,"epsilon":0.5,"max_rows":1,"missing_ids":"error","rdp_order":null,"relation":"add_remove","unit":"row"}','1c1a1d5b0a09fb3ee59f6ea8acebe3d949f87e95dfef8a18eba561fb9fa4a9d1');
INSERT INTO "records" VALUES(8,'people (reserved at 6)','charge','{"delta":0.0,"epsilon":0.25,"event":"{\"epsilon\":0.25,\"type\":\"PureDP\"}","label":"","part":null,"seeded":false,"time":"2026-11-23T15:48:45+00:00","version":"0.1.0.dev0"}','212eaaf135c3d59365e10d6a86e4c859e1f8805df8386d484532681a4b6fdfcf');
INSERT INTO "records" VALUES(9,'people','change_cap','{"delta":0.0001,"epsilon":4.0,"reason":"the committee of 2026","time":"2026-11-23T15:48:45+00:00"}','b919f7ab4bb7656ce9347fbfa27a9d13cb88e7f56b622f492d67546ce367597b');
INSERT INTO "records" VALUES(10,'others','open','{"composition":"zcdp","delta":1e-05,"epsilon":2.0,"max_rows":1,"missing_ids":"error","rdp_order":null,"relation":"replace_one","unit":"row"}','7f0ee4327c9db7b0ef4597a6d7bd14966e78a4b156f6eebac62fe4eb02bb1540');
INSERT INTO "records" VALUES(11,'others','charge','{"delta":1e-05,"epsilon":0.5457255482740032,"event":"{\"delta\":0.0,\"rho\":0.01,\"type\":\"ZCDP\"}","label":"a sum","part":null,"seeded":false,"time":"2026-11-23T15:48:45+00:00","version":"0.1.0.dev0"}','6d46fc684f052b8a7a817c2ea3b0a5a5d1f361e89f8f4035332562fbc65cb60c');
COMMIT;
PRAGMA user_version = 1;
PRAGMA application_id = 1936417904;
