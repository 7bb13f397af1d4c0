// The metrics of uploaded files in a gateway process.

import type { CounterCell, MetricsRegistry } from '../../platform/metrics.ts';

export type UploadOutcome = 'kept' | 'deduped' | 'refused' | 'left' | 'failed';

const OUTCOMES: readonly UploadOutcome[] = ['kept', 'deduped', 'refused', 'left', 'failed'];

export class MediaMetrics {
  readonly receivedBytes: CounterCell;
  readonly servedBytes: CounterCell;
  readonly missingObjects: CounterCell;
  private readonly uploads: ReadonlyMap<UploadOutcome, CounterCell>;

  constructor(metrics: MetricsRegistry) {
    const uploads = metrics.counter('tollgate_media_uploads_total', 'Uploads of files, by what became of them', [
      'outcome',
    ]);
    this.uploads = new Map(OUTCOMES.map((outcome) => [outcome, uploads.labels(outcome)]));
    this.receivedBytes = metrics
      .counter('tollgate_media_received_bytes_total', 'Bytes of files that clients uploaded')
      .labels();
    this.servedBytes = metrics.counter('tollgate_media_served_bytes_total', 'Bytes of files that were served').labels();
    this.missingObjects = metrics
      .counter('tollgate_media_missing_objects_total', 'Requests for a file whose row exists and whose bytes do not')
      .labels();
  }

  uploadEnded(outcome: UploadOutcome): void {
    this.uploads.get(outcome)?.increment();
  }
}
