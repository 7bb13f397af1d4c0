-- Cells of sealed days have their counts in one array and their exact sums in another (src/storage/clickhouse/reports/metric-columns.ts), since a
-- statement is planned by the column. The columns of single counts and sums stay, empty, for the version before, which makes cells of its own. In the
-- embedded engine only.

ALTER TABLE sealed_series
    ADD COLUMN IF NOT EXISTS counts Array(UInt64),
    ADD COLUMN IF NOT EXISTS exact_sums Array(Decimal(38, 12)) COMMENT 'Of money and of tokens';

ALTER TABLE sealed_groups
    ADD COLUMN IF NOT EXISTS counts Array(UInt64),
    ADD COLUMN IF NOT EXISTS exact_sums Array(Decimal(38, 12)) COMMENT 'Of money and of tokens';

ALTER TABLE sealed_facets
    ADD COLUMN IF NOT EXISTS counts Array(UInt64),
    ADD COLUMN IF NOT EXISTS exact_sums Array(Decimal(38, 12)) COMMENT 'Of money and of tokens';
