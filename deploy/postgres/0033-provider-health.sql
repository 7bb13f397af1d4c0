-- What each gateway process has seen of the providers that it calls, written every few seconds and put together by who
-- shows it. Nothing depends on it.

CREATE TABLE provider_health (
  provider_id         text NOT NULL REFERENCES providers (id) ON DELETE CASCADE,
  -- The gateway process.
  epoch               bigint NOT NULL,
  observed_at         timestamptz NOT NULL,
  last_success_at     timestamptz,
  last_failure_at     timestamptz,
  last_failure        text,
  last_failure_status integer,
  -- From the call to the first byte of the reply, of late.
  latency_ms          double precision,
  -- Those that are not over: [{"model": text or null for its whole address, "until": time, "for_all": boolean}].
  pauses              jsonb NOT NULL,
  PRIMARY KEY (provider_id, epoch)
);
