-- SPDX-License-Identifier: Apache-2.0
-- results.db as version 1 made it: a dump with one key, two generations and three variants.
PRAGMA application_id = 1349021538;
BEGIN TRANSACTION;
CREATE TABLE fact (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (kind, name)
) STRICT;
INSERT INTO "fact" VALUES('description','abc',X'00FF');
CREATE TABLE generation (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  key_id INTEGER NOT NULL REFERENCES result_key (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  pinned INTEGER NOT NULL,
  finished_unix_ms INTEGER NOT NULL,
  winner TEXT NOT NULL,
  best_ns INTEGER NOT NULL,
  contended INTEGER NOT NULL,
  variants_timed INTEGER NOT NULL,
  variants_total INTEGER NOT NULL,
  options TEXT NOT NULL,
  extents TEXT NOT NULL,
  compiler_fingerprint TEXT NOT NULL,
  driver TEXT NOT NULL,
  card_uuid TEXT NOT NULL,
  asked_by TEXT NOT NULL,
  checksum INTEGER NOT NULL,
  result BLOB NOT NULL
) STRICT;
INSERT INTO "generation" VALUES(1,1,1,0,1700000000001,'BLOCK=512',5000,0,1,2,'flush_l2=1','N=4096','phobos-compile 1','6.1.0','host','uid 1000 pid 1',1147738163,X'666972737420726573756C74');
INSERT INTO "generation" VALUES(2,1,2,0,1700000000002,'BLOCK=512',4000,0,1,1,'flush_l2=1','N=4096','phobos-compile 1','6.1.0','host','uid 1000 pid 1',3964547803,X'7365636F6E6420726573756C74');
CREATE TABLE key_value (
  key_id INTEGER NOT NULL REFERENCES result_key (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (key_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "key_value" VALUES(1,0,'N',4096);
CREATE TABLE result_key (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,
  kernel TEXT NOT NULL,
  source_digest TEXT NOT NULL,
  chip TEXT NOT NULL,
  card_name TEXT NOT NULL
) STRICT;
INSERT INTO "result_key" VALUES(1,'86866195490e23c9916059d1cc734250846230d97efda9e068acba0cef754d97','kernel=gelu
N=4096
','gelu','ce677f0f258927f8f3862d16b4d077b11d7027ea12cc7e8ae6e8b95ba5018bcb','x86-64-v3','Test CPU, 2 threads');
CREATE TABLE schema_version (version INTEGER NOT NULL, oldest_reader INTEGER NOT NULL) STRICT;
INSERT INTO "schema_version" VALUES(1,1);
CREATE TABLE variant (
  generation_id INTEGER NOT NULL REFERENCES generation (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  settings TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT NOT NULL,
  best_ns INTEGER NOT NULL,
  median_ns INTEGER NOT NULL,
  artifact_digest TEXT NOT NULL,
  samples_ns TEXT NOT NULL,
  PRIMARY KEY (generation_id, position)
) STRICT, WITHOUT ROWID;
INSERT INTO "variant" VALUES(1,0,'BLOCK=256','wrong_result','out[3]: got 1, want 2',0,0,'','');
INSERT INTO "variant" VALUES(1,1,'BLOCK=512','timed','',5000,5100,'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb','5000 5200');
INSERT INTO "variant" VALUES(2,0,'BLOCK=512','timed','',4000,4100,'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb','4000 4200');
CREATE INDEX result_key_by_kernel ON result_key (kernel);
CREATE UNIQUE INDEX generation_by_number ON generation (key_id, number);
CREATE INDEX generation_by_service ON generation (key_id, pinned DESC, number DESC);
CREATE INDEX generation_by_time ON generation (finished_unix_ms DESC);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('generation',2);
COMMIT;
