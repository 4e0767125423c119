import type { Break } from '../subject.ts';

/** Ways to break the machine of a session. */
export const breaks: readonly Break[] = [
  {
    name: 'a session of a server without a quorum is asked of others',
    find: "identity: readOnly && !attaches ? 'provisional' : 'known' }",
    replace: "identity: 'known' }",
  },
  {
    name: 'nobody is told who asks after a doubt',
    find: 'if (!at.doubt.asks)\n        return introduce(at, { readOnly });',
    replace: 'if (!at.doubt.asks)\n        return presented(at, readOnly, true, 0);',
  },
  {
    name: 'credentials are not waited for',
    find: "    if (!taken)\n        return same({ ...at, link: { at: 'authenticating', readOnly, unrestored } });\n",
    replace: '',
  },
  {
    name: 'an answer to credentials that comes first is forgotten',
    find: 'return same({ ...at, link: { ...link, taken: true } });',
    replace: 'return same(at);',
  },
  {
    name: 'requests are sent before listeners are told',
    find: "const effects = [tell(next, undefined), { do: 'go-on', event: { on: 'told' } }];",
    replace:
      "const effects = [{ do: 'open' }, tell(next, undefined), { do: 'go-on', event: { on: 'told' } }];",
  },
  {
    name: 'a session that is over keeps its connection',
    find: "const gone = [{ do: 'forget-session' }, { do: 'drop', error }];",
    replace: "const gone = [{ do: 'forget-session' }];",
  },
  {
    name: 'what waits outlives its session',
    find: "        return after([bury], closed(at));\n    const next = { ...at, told: 'expired' };",
    replace: '        return after([], closed(at));\n    const next = at;',
  },
  {
    name: 'a connection that is lost is not told',
    find: 'return { next, effects: [tell(next, event.error)] };',
    replace: 'return { next, effects: [] };',
  },
  {
    name: 'a close that was lost with its connection is not sent again',
    find: "ending: ending === 'sent' ? 'asked' : ending,",
    replace: 'ending,',
  },
  {
    name: 'a close that waits is forgotten when a server serves',
    find: "            if (at.ending === 'asked')\n                return after(search, sendClose(at));\n",
    replace: '',
  },
  {
    name: 'watches count as restored before they are',
    find: "    return 'unrestored' in place && place.unrestored === 0;",
    replace: "    return 'unrestored' in place;",
  },
  {
    name: 'what was seen is doubted while the session may live',
    find: "if (told !== 'expired' || !shutOut)",
    replace: 'if (!shutOut)',
  },
  {
    name: 'a doubt is settled by a server without a quorum',
    find: "    if (readOnly)\n        return dropped(at, 'a server without a quorum cannot say how far it has come');\n",
    replace: '',
  },
  {
    name: 'what was seen is forgotten without a proof',
    find: 'return event.behind ? after(',
    replace: 'return true ? after(',
  },
];
