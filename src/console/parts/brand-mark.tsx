// The logo.

export function BrandMark() {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
      <rect class="mark-ground" width="32" height="32" rx="7" />
      <path class="mark-line" d="M6 12h20M10 12v12M22 12v12" />
    </svg>
  );
}
