// A field for how long a replaced secret stays valid.

import { SelectField } from './form.tsx';

export const OVERLAP_DEFAULT = '3600';

const OVERLAPS = [
  { id: '0', name: 'no time' },
  { id: '3600', name: 'an hour' },
  { id: '86400', name: 'a day' },
];

interface OverlapFieldProps {
  readonly label: string;
  /** In seconds. */
  readonly value: string;
  readonly onValue: (value: string) => void;
}

export function OverlapField({ label, value, onValue }: OverlapFieldProps) {
  return <SelectField label={label} value={value} onValue={onValue} options={OVERLAPS} />;
}
