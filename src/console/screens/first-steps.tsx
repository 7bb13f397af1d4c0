// The steps to a first request, with those that are done ticked off.

import { Link } from '../parts/link.tsx';
import { Card } from '../parts/page.tsx';
import { useRead } from '../state/load.ts';
import { may } from '../state/session.ts';

export function FirstSteps() {
  const isAdministrator = may('org.admin');
  const keys = useRead(isAdministrator ? '/v1/admin/active-org/keys' : '/v1/me/keys', { query: { limit: 1 } }).data
    ?.data;
  const models = useRead('/v1/models').data?.data;
  const credits = useRead('/v1/billing/credits').data?.data;
  const limits = useRead('/v1/usage/limits/current').data?.data;
  const steps = [
    { done: (models?.length ?? 0) > 0, text: 'The catalog has a model', link: <Link to="connect">Models</Link> },
    {
      done: credits !== undefined && (credits.available === null || Number(credits.available) > 0),
      text: 'There is credit',
      link: null,
    },
    { done: (keys?.length ?? 0) > 0, text: 'An inference key exists', link: <Link to="keys">Create a key</Link> },
    {
      done: (limits?.length ?? 0) > 0,
      text: 'A budget prevents surprises',
      link: isAdministrator ? <Link to="limits">Set a budget</Link> : null,
    },
    { done: false, text: 'The first request', link: <Link to="connect">Connect a client</Link> },
  ];
  return (
    <Card title="First steps" note="No request in this window yet.">
      <ol class="steps">
        {steps.map(({ done, text, link }) => (
          <li key={text} class={done ? 'done' : undefined}>
            <span aria-hidden="true">{done ? '✓' : '○'}</span>
            <span>
              <span class="unseen">{done ? 'Done: ' : 'To do: '}</span>
              {text} {!done && link !== null && <>· {link}</>}
            </span>
          </li>
        ))}
      </ol>
    </Card>
  );
}
