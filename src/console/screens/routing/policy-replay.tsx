// Shows how a draft would have routed the requests of the last days, beside how they were routed.

import { useState } from 'preact/hooks';
import { type AnswerOf, call } from '../../api.ts';
import { dollars, percent, whole } from '../../logic/format.ts';
import { Bar, Stat, Stats } from '../../parts/figures.tsx';
import { FormRefusal, SelectField, useSubmit } from '../../parts/form.tsx';
import { Card } from '../../parts/page.tsx';
import { type Column, numberColumn, Table } from '../../parts/table.tsx';
import type { RoutingDefinition as Definition } from '../../state/policies.ts';

type Replayed = AnswerOf<'/v1/admin/routing/replay', 'post'>['data'];

interface ReplayProps {
  /** null while the text of the draft cannot be read. */
  readonly definition: Definition | null;
  readonly onReplayed: () => void;
}

export function PolicyReplay({ definition, onReplayed }: ReplayProps) {
  const [days, setDays] = useState('7');
  const [shown, setShown] = useState<Replayed | null>(null);
  const { isBusy, refusal, run } = useSubmit<{ readonly data: Replayed }>(({ data }) => {
    setShown(data);
    onReplayed();
  });
  return (
    <Card
      title="Replay"
      note="How the draft would have routed past requests. No model is called: classifications come from the records."
    >
      <form
        class="filters try"
        onSubmit={(event) => {
          event.preventDefault();
          if (definition === null) return;
          void run(() =>
            call('post', '/v1/admin/routing/replay', { body: { policy: definition, days: Number(days) } }),
          );
        }}
      >
        <SelectField
          label="Requests of"
          value={days}
          onValue={setDays}
          options={[
            { id: '1', name: 'the last day' },
            { id: '7', name: 'the last 7 days' },
            { id: '31', name: 'the last 31 days' },
          ]}
        />
        <button type="submit" disabled={isBusy || definition === null}>
          {isBusy ? 'Replaying' : 'Replay'}
        </button>
      </form>
      <FormRefusal refusal={refusal} />
      {shown !== null && <Shown replayed={shown} />}
    </Card>
  );
}

function Shown({ replayed }: { readonly replayed: Replayed }) {
  const { was, draft } = replayed;
  const shareOf = (count: number) => (replayed.replayed === 0 ? 0 : count / replayed.replayed);
  const columns: Column<Replayed['tiers'][number]>[] = [
    { name: 'Tier', raw: ({ tier }) => tier, show: ({ tier }) => (tier === '' ? 'no tier' : tier) },
    numberColumn(
      'Was',
      ({ was: count }) => count,
      (count) => `${whole(count)} · ${percent(shareOf(count))}`,
    ),
    {
      name: 'Share',
      raw: ({ was: count }) => count,
      show: ({ was: count }) => <Bar share={shareOf(count)} />,
      isExtra: true,
    },
    numberColumn(
      'Under the draft',
      ({ draft: count }) => count,
      (count) => `${whole(count)} · ${percent(shareOf(count))}`,
    ),
    {
      name: 'Its share',
      raw: ({ draft: count }) => count,
      show: ({ draft: count }) => <Bar share={shareOf(count)} series={1} />,
      isExtra: true,
    },
  ];
  const missed: Column<Replayed['unreplayed'][number]>[] = [
    { name: 'Not replayed', raw: ({ reason }) => reason },
    numberColumn('Requests', ({ requests }) => requests, whole),
  ];
  return (
    <div aria-live="polite">
      {!replayed.whole && (
        <p class="note">
          Only the latest requests of these days were replayed: there are more than this page replays. The command
          replays all of them.
        </p>
      )}
      <Stats>
        <Stat name="Replayed" value={whole(replayed.replayed)} note={`of ${whole(replayed.requests)} routed`} />
        <Stat
          name="On another model"
          value={whole(replayed.moved)}
          note={`${whole(replayed.continued)} continue a response`}
        />
        <Stat
          name="Spend"
          value={dollars(draft.cost)}
          note={`was ${dollars(was.cost)}, over ${whole(replayed.compared)}`}
        />
        <Stat
          name="Saved"
          value={dollars(draft.savings)}
          note={`was ${dollars(was.savings)}, of ${dollars(draft.baseline_cost)} on the strongest`}
        />
      </Stats>
      {replayed.replayed > 0 && <Table caption="Tiers" columns={columns} rows={replayed.tiers} />}
      {replayed.unreplayed.length > 0 && <Table caption="Not replayed" columns={missed} rows={replayed.unreplayed} />}
    </div>
  );
}
