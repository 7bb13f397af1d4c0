-- Which kinds of models there are is one table of the code, by which the configuration file is checked: a new kind needs no migration.
ALTER TABLE models DROP CONSTRAINT models_kind_check;
