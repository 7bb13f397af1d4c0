// The values of the `status` filter of a listing: `429`, a class such as `4xx`, `error` (as the reports count errors)
// or `success`.

export const STATUS_FILTER = /^(?:[1-5][0-9][0-9]|[1-5]xx|error|success)$/;
