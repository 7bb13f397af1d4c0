-- Says that the migrations of deploy/clickhouse are in 0001 of this directory, so that the jobs process does not alter a distributed table. Every
-- server has all rows, whichever one the jobs process asks.

CREATE TABLE IF NOT EXISTS applied_migrations ON CLUSTER '{cluster}'
(
    number UInt32,
    name String,
    checksum String,
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3),
    needs Nullable(UInt32)
)
ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{database}/applied_migrations', '{shard}-{replica}')
ORDER BY number;
ALTER TABLE applied_migrations ON CLUSTER '{cluster}' ADD COLUMN IF NOT EXISTS needs Nullable(UInt32);

INSERT INTO applied_migrations (number, name, checksum) VALUES
    (1, '0001-request-facts', 'cdc41ddaf204da1c48be50f77575dd5b0a9e9b6e8c6a378102d55fb6b36ae639'),
    (2, '0002-model-route', 'f685bd182e01b84683d9c49cbd0f3b1a02009adcaf7bfc08e83892f69a0b798c'),
    (3, '0003-truncated', '7683f5efc1200ef37debeec626b87b2a1625c7404335ef89e43013dfbe31d932'),
    (4, '0004-merge-past-months', 'b3e653fcd899315fe779ec38735d9613d0321a9475563d510da16cacb32b3695'),
    (5, '0005-guardrail', '9fe33f1bc9fbc041446cf6b01c8f13c306ea70f3d22bece227b1ec4df90abdcc'),
    (6, '0006-guardrail-findings', 'd4c9a348ceb39972ab8910091a745d6695e6f95885ccd8e7440811e83f7ff716'),
    (7, '0007-own-keys', '1739cd54bd42906b2077674dd686d93da836cce3c386ce2c948a16f261bfda37'),
    (8, '0008-sealed-days', 'b22aaa3fa82469235ad8c9918e775ffa4ca7961ae25c0919de6ce1f56fba4898'),
    (9, '0009-cells-by-status', '565da51fff68b5feb0145aaa3179a1afe472e8829735b5c10501465ab4d3a524'),
    (10, '0010-cells-of-few-columns', '0edd94c3c23cf674324150f0a62a5d4fe219279515da14da989b52d0f6dabfb6'),
    (11, '0011-merge-by-column', '3a736a5fe65edde18e8e2fa1ebd3a5ca4ad42a84f4711e695743290bea00df07');
