import type { Break } from '../subject.ts';

/** Ways to break the machine of a term. */
export const breaks: readonly Break[] = [
  {
    name: 'the seat is given back before belief ends',
    find: "const closing = [...before, { do: 'end-belief' },",
    replace: 'const closing = [...before,',
  },
  {
    name: 'the seat is given back while the work goes on',
    find: "    if (settled) {\n        const next = { at: 'releasing'",
    replace: "    if (true) {\n        const next = { at: 'releasing'",
  },
  {
    name: 'the seat is given back while a confirmation is on its way',
    find: 'if (!through || !(settled || over))',
    replace: 'if (!(settled || over))',
  },
  {
    name: 'the work is not told of its end',
    find: "        { do: 'stop-work', end },\n",
    replace: '',
  },
  {
    name: 'a term at its margin goes on',
    find: "case 'margin-over':\n            return lost(",
    replace: "case 'margin-over':\n            return state.announced ? same(state) : lost(",
  },
  {
    name: 'a later reason replaces the first',
    find: "        case 'margin-over':\n            return lapse(state, state.end, {});",
    replace:
      "        case 'margin-over':\n            return lapse(state, { reason: 'stalled' }, {});",
  },
  {
    name: 'a seat that was taken away is believed in',
    find: "return now === true || takesSeatAway(reason) || reason === 'election-ended';",
    replace: 'return now === true;',
  },
  {
    name: 'a term is confirmed on after it was given up',
    find: "effects: [...ending, { do: 'stop-keeping' }]",
    replace: 'effects: [...ending]',
  },
  {
    name: 'whose work has settled is renewed on',
    find: "        case 'settled':\n        case 'waited-enough':\n            return lapse(",
    replace:
      "        case 'settled':\n            return same(state);\n        case 'waited-enough':\n            return lapse(",
  },
  {
    name: 'work that runs on is taken for work that has settled',
    find: "case 'belief-over':\n            return closed({ ...state, over: true }, []);",
    replace: "case 'belief-over':\n            return closed({ ...state, settled: true }, []);",
  },
];
