// Loads the catalog's models, and offers a choice of those that answer in text, with auto routing first.

import type { ComponentChildren } from 'preact';
import type { AnswerOf } from '../api.ts';
import { useRead } from '../state/load.ts';
import { autoModel } from '../state/session.ts';
import { SelectField } from './form.tsx';
import { Loaded } from './loaded.tsx';

export type Model = AnswerOf<'/v1/models'>['data'][number];

/** Renders `children` with the catalog's models once they are loaded, if there is at least one. */
export function WithModels({ children }: { readonly children: (models: readonly Model[]) => ComponentChildren }) {
  const models = useRead('/v1/models');
  return (
    <Loaded
      load={models}
      permission="inference"
      isEmpty={({ data }) => data.length === 0}
      empty="The catalog has no model yet."
    >
      {({ data }) => children(data)}
    </Loaded>
  );
}

interface ModelChoiceProps {
  readonly models: readonly Model[];
  /** Offers only models that are served on this API. */
  readonly api?: Model['apis'][number];
  readonly value: string;
  readonly onValue: (model: string) => void;
}

export function ModelChoice({ models, api, value, onValue }: ModelChoiceProps) {
  const texts = models.filter(({ kind, apis }) => kind === 'text' && (api === undefined || apis.includes(api)));
  return (
    <SelectField
      label="Model"
      value={value}
      onValue={onValue}
      options={[...new Set([autoModel(), ...texts.map(({ id }) => id)])]}
      hint={value === autoModel() ? 'The routing policy chooses the cheapest model that would answer well.' : undefined}
    />
  );
}
