create table customer (name text primary key);

create table report (
  id       bigint generated always as identity primary key,
  due      timestamptz not null, -- the tick of the schedule that it belongs to
  customer text        not null,
  token    bigint      not null  -- of the term that has written it
);
