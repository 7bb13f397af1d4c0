-- Requests that were refused are recorded beside those that were executed, and forgotten after a month: the job finds them by this.

CREATE INDEX generations_refused ON generations (admitted_at) WHERE outcome = 'refused';
