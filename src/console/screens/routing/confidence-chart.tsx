// The chart of the classifier's confidence in ten buckets. Administrators of the platform also see the policy's floor.

import { ChartFigure } from '../../charts/chart-figure.tsx';
import { Axes, Mark } from '../../charts/stacked-bars.tsx';
import { scaleOf, stackedBarPaths } from '../../logic/chart-scale.ts';
import { countTick, whole } from '../../logic/format.ts';
import { useRead } from '../../state/load.ts';
import type { Routing } from '../../state/reports.ts';
import { may } from '../../state/session.ts';

interface Props {
  readonly report: Routing;
  readonly command: string;
}

export function ConfidenceChart({ report: { confidence, policies }, command }: Props) {
  const latest = [...policies].sort((one, other) => other.last_used_at.localeCompare(one.last_used_at))[0];
  const path = may('platform.admin') && latest !== undefined ? '/v1/admin/routing/policies/{policyName}' : null;
  const policy = useRead(path, { pathParameters: { policyName: latest?.policy ?? '' } }).data?.data;
  const floor = policy?.definition.classifier.confidence_floor;
  const labels = confidence.map(({ from }) => from.toFixed(1));
  const most = confidence.reduce((max, { requests }) => Math.max(max, requests), 0);
  return (
    <ChartFigure
      title="Confidence of the classifier"
      note={
        floor === undefined
          ? 'Requests by how sure the classifier was.'
          : `Below the policy’s floor of ${floor} one tier above serves.`
      }
      command={command}
      columns={[
        { name: 'From', raw: ({ from }) => from },
        { name: 'To', raw: ({ to }) => to },
        { name: 'Requests', raw: ({ requests }) => requests, show: ({ requests }) => whole(requests), isNumber: true },
      ]}
      rows={confidence}
      points={confidence.length}
      describe={(index) => {
        const bucket = confidence[index];
        return bucket === undefined ? '' : `${bucket.from} to ${bucket.to}: ${whole(bucket.requests)} requests`;
      }}
      draw={({ frame, selected }) => {
        const scale = scaleOf(frame, confidence.length, most);
        return (
          <>
            <Axes scale={scale} axis={countTick} labels={labels} selected={selected} />
            {stackedBarPaths(
              [{ name: 'Requests', values: confidence.map(({ requests }) => requests) }],
              scale,
              confidence.length,
            ).map((path) => (
              <path key="bars" class="fill s0" d={path} />
            ))}
            {floor !== undefined && (
              <Mark x={frame.left + floor * frame.width} name={`The floor: ${floor}`} frame={frame} />
            )}
          </>
        );
      }}
    />
  );
}
