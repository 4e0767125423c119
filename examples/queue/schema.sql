create table customer (
  name     text primary key,
  next_due timestamptz not null default now()
);

create table invoice (
  id       bigint generated always as identity primary key,
  customer text        not null,
  due      timestamptz not null,
  token    bigint      not null, -- of the term that made the job
  worker   int         not null
);
