// The settings about what jobs tells of each ended execution: the access log and traces (ACCESS_LOG, OTEL_*), as one
// value.

export interface ObservingConfig {
  /** Whether jobs writes a line for each ended execution into the data directory. */
  readonly accessLog: boolean;
  /** null: no traces leave, and gateways keep no trace context. */
  readonly traces: TraceConfig | null;
}

export interface TraceConfig {
  /** Where OTLP over HTTP is taken, with its path. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** Of the executions that nobody decided about, which neither failed nor were slow: this share is exported. */
  readonly ratio: number;
}

export interface ObservingSettings {
  readonly ACCESS_LOG?: 'on' | 'off' | undefined;
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string | undefined;
  readonly OTEL_EXPORTER_OTLP_HEADERS?: Readonly<Record<string, string>> | undefined;
  readonly OTEL_SERVICE_NAME?: string | undefined;
  readonly OTEL_TRACES_SAMPLER_ARG?: number | undefined;
}

export function observingConfigOf(settings: ObservingSettings): ObservingConfig {
  const endpoint = settings.OTEL_EXPORTER_OTLP_ENDPOINT;
  return {
    accessLog: settings.ACCESS_LOG === 'on',
    traces:
      endpoint === undefined
        ? null
        : {
            url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
            headers: settings.OTEL_EXPORTER_OTLP_HEADERS ?? {},
            serviceName: settings.OTEL_SERVICE_NAME ?? 'tollgate',
            ratio: settings.OTEL_TRACES_SAMPLER_ARG ?? 1,
          },
  };
}

/** `name=value,...`, the values with percent signs, as OpenTelemetry writes them; null: something else. */
export function readHeaders(text: string): Readonly<Record<string, string>> | null {
  const headers: Record<string, string> = {};
  for (const entry of text.split(',')) {
    const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*([\x21-\x7e]*)\s*$/.exec(entry) ?? [];
    if (name === undefined || value === undefined) return null;
    try {
      headers[name.toLowerCase()] = decodeURIComponent(value);
    } catch {
      return null;
    }
  }
  // With a line break in one of them no request could be sent.
  return Object.values(headers).every((value) => /^[\x20-\x7e]*$/.test(value)) ? headers : null;
}
