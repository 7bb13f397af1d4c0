// How the installation runs: pending executions, comparisons of the books, jobs, and processes that hold credit or
// records (epochs).

import { type AnswerOf, call, curlCommand } from '../api.ts';
import { capitalized, dollars, duration, whole } from '../logic/format.ts';
import { Badge, Stat, Stats } from '../parts/figures.tsx';
import { FormRefusal, useSubmit } from '../parts/form.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { Page } from '../parts/page.tsx';
import { agoColumn, type Column, momentColumn, NamedCell, numberColumn } from '../parts/table.tsx';
import { useRead } from '../state/load.ts';

type Job = AnswerOf<'/v1/admin/jobs'>['data'][number];
type Epoch = AnswerOf<'/v1/admin/epochs'>['data'][number];
type Compared = AnswerOf<'/v1/admin/drift'>['data']['compared'][number];

const COMPARED_COLUMNS: readonly Column<Compared>[] = [
  { name: 'Compared', raw: ({ what }) => what, show: ({ what }) => <NamedCell>{capitalized(what)}</NamedCell> },
  {
    name: 'Difference',
    raw: ({ drift }) => drift,
    show: ({ drift }) =>
      drift === null ? (
        'not known yet'
      ) : (
        <Badge tone={drift === 0 ? 'good' : 'bad'}>{drift === 0 ? 'none' : whole(drift)}</Badge>
      ),
  },
  agoColumn('When', ({ checked_at: at }) => at),
  { name: 'By', raw: ({ job }) => job, isExtra: true },
];

const JOB_COLUMNS: readonly Column<Job>[] = [
  { name: 'Job', raw: ({ name }) => name, show: ({ name }) => <NamedCell>{name}</NamedCell> },
  { name: 'State', raw: ({ last_run: run }) => run?.error ?? null, show: (job) => <JobState of={job} /> },
  agoColumn('Last success', ({ last_success_at: at }) => at),
  {
    name: 'Took',
    raw: ({ last_run: run }) => run?.finished_at ?? null,
    show: ({ last_run: run }) =>
      run?.finished_at == null
        ? '–'
        : duration(new Date(run.finished_at).getTime() - new Date(run.started_at).getTime()),
    isNumber: true,
    isExtra: true,
  },
  {
    name: 'Machine',
    raw: ({ last_run: run }) => run?.machine ?? null,
    show: ({ last_run: run }) => run?.machine ?? '–',
    isExtra: true,
  },
];

function JobState({ of: { last_run: run } }: { readonly of: Job }) {
  if (run === null) return <Badge>never ran</Badge>;
  if (run.error !== null)
    return (
      <>
        <Badge tone="bad">failed</Badge>
        <span class="note">{run.error}</span>
      </>
    );
  return run.finished_at === null ? <Badge tone="warn">running</Badge> : <Badge tone="good">done</Badge>;
}

const EPOCH_COLUMNS: readonly Column<Epoch>[] = [
  { name: 'Epoch', raw: ({ epoch }) => epoch, isNumber: true },
  {
    name: 'Process',
    raw: ({ kind, pid, machine }) => `${kind} ${pid} ${machine}`,
    show: ({ kind, pid, machine }) => `${kind}, ${pid} on ${machine}`,
  },
  momentColumn('Began', ({ started_at: at }) => at),
  agoColumn('Last posted', ({ last_posted_at: at }) => at),
  numberColumn('Lent', ({ leased }) => leased, dollars),
  numberColumn('Pending', ({ pending }) => pending, whole),
];

export function Operation() {
  const jobs = useRead('/v1/admin/jobs');
  const drift = useRead('/v1/admin/drift');
  const quarantinedFiles = useRead('/v1/admin/live').data?.data.quarantined_files;
  const epochs = useRead('/v1/admin/epochs');
  const reload = () => {
    jobs.reload();
    drift.reload();
    epochs.reload();
  };
  const { isBusy, refusal, run } = useSubmit<unknown>(reload);
  const start = (jobName: string) =>
    void run(() => call('post', '/v1/admin/jobs/{jobName}/runs', { pathParameters: { jobName } }));
  return (
    <Page
      title="Jobs and drift"
      lead="Whether ledger, records and reports agree, and whether the jobs that keep them in agreement have run."
      tools={
        <button type="button" onClick={reload}>
          Refresh
        </button>
      }
      commands={[
        curlCommand('/v1/admin/drift'),
        curlCommand('/v1/admin/jobs'),
        'tollgate reconcile',
        'tollgate epoch list',
        'tollgate status',
      ]}
    >
      <Loaded load={drift} permission="platform.admin">
        {({ data: { pending } }) => <PendingFigures pending={pending} quarantinedFiles={quarantinedFiles} />}
      </Loaded>
      <ManagedList
        title="Drift"
        load={drift}
        rowsOf={({ data }) => data.compared}
        columns={COMPARED_COLUMNS}
        permission="platform.admin"
        empty="Nothing has been compared yet."
      />
      <FormRefusal refusal={refusal} />
      <ManagedList
        title="Jobs"
        load={jobs}
        rowsOf={({ data }) => data}
        columns={JOB_COLUMNS}
        permission="platform.admin"
        empty="No job is known."
        actions={({ name }) => (
          <button type="button" class="small" disabled={isBusy} onClick={() => start(name)}>
            Run now
          </button>
        )}
      />
      <ManagedList
        title="Epochs"
        note="Processes that may hold credit or records that are not posted yet."
        load={epochs}
        rowsOf={({ data }) => data}
        columns={EPOCH_COLUMNS}
        permission="platform.admin"
        empty="No process holds anything."
      />
    </Page>
  );
}

interface PendingFiguresProps {
  readonly pending: AnswerOf<'/v1/admin/drift'>['data']['pending'];
  /** The number of quarantined files on all machines; undefined while it is not known. */
  readonly quarantinedFiles: number | undefined;
}

function PendingFigures({ pending, quarantinedFiles }: PendingFiguresProps) {
  return (
    <Stats>
      <Stat name="Pending" value={whole(pending.executions)} note="executions that have not ended" />
      <Stat name="Oldest pending" value={pending.executions === 0 ? '–' : duration(pending.oldest_seconds * 1000)} />
      <Stat name="Late" value={whole(pending.late)} tone={pending.late > 0 ? 'bad' : undefined} />
      <Stat
        name="Quarantined"
        value={whole(quarantinedFiles)}
        tone={(quarantinedFiles ?? 0) > 0 ? 'bad' : undefined}
        note="files of records that could not be posted"
      />
    </Stats>
  );
}
