// Checks a broker with pulsar-flex, a Pulsar client in plain JavaScript that shares no code with the official ones:
//
//   node conform.js pulsar://HOST:PORT http://HOST:PORT
//
// Each check has topics of its own, prints one line and is given LIMIT milliseconds. The first that fails ends the
// program with exit code 1, after a line that says what was expected and what was seen.
//
// What this client lacks, and so is not checked with it: readers, seek, keys, compression, event time, null values,
// dead letters, the initial position (it is never sent, so every subscription begins at the latest), and unsubscribe
// (its method of that name closes the consumer and leaves the subscription). It acknowledges a message of a batch
// without saying which one, which acknowledges the whole batch, after it runs dry it looks for new messages once a
// second, and whether it comes back after its topic was unloaded is a matter of luck.
'use strict'
const { Producer, Consumer, logLevel } = require('pulsar-flex')

const LIMIT = 40000
const RUN = `node-${Date.now().toString(16)}-${process.pid}`
const { EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED } = Consumer.SUB_TYPES
const checks = []
const [url, admin] = process.argv.slice(2)

class Unexpected extends Error {}

function check(name, body) {
  checks.push({ name, body })
}

function same(what, want, got) {
  const [w, g] = [want, got].map((v) => JSON.stringify(v))
  if (w !== g) throw new Unexpected(`${what}: expected ${w}, saw ${g}`)
}

async function refused(what, call) {
  try {
    await call()
  } catch (e) {
    return
  }
  throw new Unexpected(`${what}: expected a refusal, saw success`)
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
const numbered = (prefix, from, to) => Array.from({ length: to - from }, (_, i) => `${prefix}-${from + i}`)
const texts = (messages) => messages.map((m) => m.text)

function common(topic) {
  return { topic: topic.includes('://') ? topic : `persistent://public/default/${topic}`, discoveryServers: [url.replace(/^pulsar:\/\//, '')], logLevel: logLevel.NOTHING }
}

async function producer(topic, more = {}) {
  const p = new Producer({ ...common(topic), ...more })
  await p.create()
  return p
}

async function publish(topic, payloads) {
  const p = await producer(topic)
  for (const payload of payloads) await p.sendMessage({ payload, properties: {} })
  await p.close()
}

// An Inbox is a consumer with what it has received and not yet taken.
class Inbox {
  constructor(topic, subType = EXCLUSIVE, consumerName = 'c', receiveQueueSize = 1000, subscription = 'sub') {
    this.waiting = []
    this.consumer = new Consumer({ ...common(topic), subscription, subType, consumerName, receiveQueueSize })
  }

  static async open(...args) {
    const inbox = new Inbox(...args)
    await inbox.consumer.subscribe()
    await inbox.consumer.run({
      autoAck: false,
      onMessage: async ({ message, properties, redeliveryCount, ack, command }) => {
        inbox.waiting.push({ text: message.toString(), bytes: message, properties, redeliveryCount, ack, command })
      },
    })
    return inbox
  }

  async take(count, ack = true) {
    for (const end = Date.now() + 30000; this.waiting.length < count && Date.now() < end; ) await sleep(20)
    if (this.waiting.length < count) throw new Unexpected(`expected ${count} messages, saw ${JSON.stringify(texts(this.waiting))}`)
    const out = this.waiting.splice(0, count)
    if (ack) for (const m of out) await m.ack()
    return out
  }

  // What comes until nothing has come for longer than this client sleeps when it runs dry.
  async drain() {
    const out = []
    do {
      out.push(...this.waiting.splice(0))
      for (let i = 0; i < 75 && !this.waiting.length; i++) await sleep(20)
    } while (this.waiting.length)
    return out
  }

  async nothingMore() {
    same('further messages', [], texts(await this.drain()))
  }

  close() {
    return this.consumer.unsubscribe()
  }
}

// The status that the admin interface answers.
async function ask(method, path, body) {
  const headers = { 'Content-Type': 'application/json' }
  return (await fetch(`${admin}/admin/v2/persistent/public/default/${path}`, { method, body, headers })).status
}

async function stats(topic) {
  const answer = await fetch(`${admin}/admin/v2/persistent/public/default/${topic}/stats`)
  same('status of the statistics', 200, answer.status)
  return answer.json()
}

// Waits for a figure that the broker brings up to date on its own time.
async function backlog(topic, want) {
  const read = async () => (await stats(topic)).subscriptions.sub.msgBacklog
  const end = Date.now() + 10000
  let got
  while ((got = await read()) !== want && Date.now() < end) await sleep(100)
  same('backlog', want, got)
}

check('publish, receive, acknowledge, with properties', async (topic) => {
  const inbox = await Inbox.open(topic)
  const p = await producer(topic)
  await p.sendMessage({ payload: 'first', properties: { unit: '°C', empty: '' } })
  await p.sendMessage({ payload: '', properties: {} })
  const [first, second] = await inbox.take(2)
  same('payload', 'first', first.text)
  same('properties', { unit: '°C', empty: '' }, first.properties)
  same('redelivery count', 0, first.redeliveryCount)
  same('empty payload', 0, second.bytes.length)
  await backlog(topic, 0)
  await inbox.close()
  await (await Inbox.open(topic)).nothingMore()
})

check('batches keep order and properties, and are acknowledged whole', async (topic) => {
  const inbox = await Inbox.open(topic)
  const p = await producer(topic)
  for (let b = 0; b < 4; b++) {
    await p.sendBatch({ messages: numbered('m', b * 25, b * 25 + 25).map((payload, i) => ({ payload, properties: { n: `${i}` } })) })
  }
  const got = await inbox.take(100, false)
  same('texts', numbered('m', 0, 100), texts(got))
  same('properties', Array.from({ length: 100 }, (_, i) => `${i % 25}`), got.map((m) => m.properties.n))
  same('entries', 4, new Set(got.map((m) => `${m.command.messageId.ledgerid}:${m.command.messageId.entryid}`)).size)
  for (const i of [0, 30, 60, 99]) await got[i].ack()
  await backlog(topic, 0)
})

check('a large message arrives unchanged', async (topic) => {
  const inbox = await Inbox.open(topic)
  const payload = Buffer.alloc(1000000, 'wayside')
  const p = await producer(topic)
  await p.sendMessage({ payload, properties: {} })
  await p.sendMessage({ payload: 'after', properties: {} })
  const got = await inbox.take(2)
  same('unchanged', true, payload.equals(got[0].bytes))
  same('next message', 'after', got[1].text)
})

check('cumulative acknowledgement', async (topic) => {
  const inbox = await Inbox.open(topic)
  await publish(topic, numbered('m', 0, 10))
  await (await inbox.take(10, false))[6].ack({ type: Consumer.ACK_TYPES.CUMULATIVE })
  await backlog(topic, 3)
  await inbox.close()
  same('came again', numbered('m', 7, 10), texts(await (await Inbox.open(topic)).take(3)))
})

check('Shared: a negative acknowledgement brings redelivery with its count', async (topic) => {
  const inbox = await Inbox.open(topic, SHARED)
  await publish(topic, numbered('m', 0, 3))
  for (const m of await inbox.take(3, false)) await m.ack(m.text === 'm-1' ? { type: Consumer.ACK_TYPES.NEGATIVE } : {})
  for (const count of [1, 2]) {
    const [again] = await inbox.take(1, false)
    same('redelivered', 'm-1', again.text)
    same('redelivery count', count, again.redeliveryCount)
    await again.ack(count === 1 ? { type: Consumer.ACK_TYPES.NEGATIVE } : {})
  }
  await inbox.nothingMore()
  await backlog(topic, 0)
})

check('Exclusive: a negative acknowledgement brings all again that is open, in order', async (topic) => {
  const inbox = await Inbox.open(topic)
  await publish(topic, numbered('m', 0, 5))
  const got = await inbox.take(5, false)
  await got[0].ack()
  await got[2].ack({ type: Consumer.ACK_TYPES.NEGATIVE })
  same('came again', numbered('m', 1, 5), texts(await inbox.take(4)))
})

check('Exclusive: a second consumer is refused, until the first leaves', async (topic) => {
  const first = await Inbox.open(topic)
  await refused('second consumer', () => Inbox.open(topic))
  await first.close()
  await (await Inbox.open(topic)).close()
})

check('Shared: each message to one consumer, what one leaves goes to the other', async (topic) => {
  const [one, two] = [await Inbox.open(topic, SHARED, 'a', 10), await Inbox.open(topic, SHARED, 'b', 10)]
  await publish(topic, numbered('m', 0, 20))
  const [left, kept] = await Promise.all([one.drain(), two.drain()])
  same('both have work', true, left.length > 0 && kept.length > 0)
  same('together', numbered('m', 0, 20).sort(), texts([...left, ...kept]).sort())
  for (const m of kept) await m.ack()
  await one.close()
  same('what the first left', texts(left).sort(), texts(await two.take(left.length)).sort())
})

check('Failover: one consumer has all, the other takes over in order', async (topic) => {
  const inboxes = [await Inbox.open(topic, FAILOVER, 'a'), await Inbox.open(topic, FAILOVER, 'b')]
  await sleep(1200) // which of them is active is the broker's choice, and it may take a second over it
  await publish(topic, numbered('m', 0, 10))
  const got = await Promise.all(inboxes.map((i) => i.drain()))
  const active = got[0].length ? 0 : 1
  same('of the active and the other', [10, 0], [got[active].length, got[1 - active].length])
  for (const m of got[active].slice(0, 4)) await m.ack()
  await inboxes[active].close()
  same('taken over', numbered('m', 4, 10), texts(await inboxes[1 - active].take(6)))
})

check('Key_Shared: messages without a key are shared out, in order at each consumer', async (topic) => {
  const inboxes = [await Inbox.open(topic, KEY_SHARED, 'a'), await Inbox.open(topic, KEY_SHARED, 'b')]
  await publish(topic, numbered('m', 0, 10))
  const got = await Promise.all(inboxes.map((i) => i.drain()))
  same('together', numbered('m', 0, 10), got.flatMap(texts).sort())
  for (const g of got) same('order', texts(g).sort(), texts(g))
})

check('producer with exclusive access: a second one is refused', async (topic) => {
  const first = await producer(topic, { producerAccessMode: Producer.ACCESS_MODES.EXCLUSIVE })
  await refused('second producer', () => producer(topic))
  await first.close()
  await producer(topic)
})

check('two subscriptions have everything, each on its own', async (topic) => {
  const inboxes = [await Inbox.open(topic), await Inbox.open(topic, SHARED, 'c', 1000, 'other')]
  await publish(topic, numbered('m', 0, 10))
  for (const inbox of inboxes) same('texts', numbered('m', 0, 10), texts(await inbox.take(10, inbox === inboxes[0])))
  await backlog(topic, 0)
  same('backlog of the one that keeps all', 10, (await stats(topic)).subscriptions.other.msgBacklog)
})

check('a small queue is filled again and again, and acknowledged by the client itself', async (topic) => {
  const inbox = new Inbox(topic, EXCLUSIVE, 'c', 4)
  await inbox.consumer.subscribe()
  await inbox.consumer.run({ autoAck: true, onMessage: async ({ message }) => { inbox.waiting.push({ text: message.toString() }) } })
  await publish(topic, numbered('m', 0, 30))
  same('texts', numbered('m', 0, 30), texts(await inbox.take(30, false)))
  await backlog(topic, 0)
})

check('a non-persistent topic gives what it can at once', async (topic) => {
  const name = `non-persistent://public/default/${topic}`
  const p = await producer(name)
  await p.sendMessage({ payload: 'nobody', properties: {} })
  const inbox = await Inbox.open(name)
  await sleep(200) // that it may have messages is told on its own, without an answer
  for (const payload of numbered('m', 0, 10)) await p.sendMessage({ payload, properties: {} })
  same('texts', numbered('m', 0, 10), texts(await inbox.take(10)))
})

check('one partition by its name', async (topic) => {
  same('partitions', 204, await ask('PUT', `${topic}/partitions`, '2'))
  const inboxes = [await Inbox.open(`${topic}-partition-0`), await Inbox.open(`${topic}-partition-1`)]
  for (const i of [0, 1]) await publish(`${topic}-partition-${i}`, [`to ${i}`])
  for (const i of [0, 1]) same('texts', [`to ${i}`], texts(await inboxes[i].take(1)))
})

check('a terminated topic: no more is taken, the rest is read', async (topic) => {
  const inbox = await Inbox.open(topic)
  await publish(topic, ['last'])
  same('terminate', 200, await ask('POST', `${topic}/terminate`))
  await refused('a further producer', () => producer(topic))
  same('texts', ['last'], texts(await inbox.take(1)))
})

check('names of any characters', async (topic) => {
  await Promise.all(['a b', '100%', 'ü-ß-漢', '#h;c', 'a+b', '%2F'].map(async (odd) => {
    const inbox = await Inbox.open(topic + odd)
    await publish(topic + odd, [odd])
    same(`by the name ${odd}`, [odd], texts(await inbox.take(1)))
  }))
})

check('messages expired by request', async (topic) => {
  await (await Inbox.open(topic)).close()
  await publish(topic, numbered('old', 0, 3))
  await sleep(2100)
  await publish(topic, ['new'])
  same('expiry', 204, await ask('POST', `${topic}/subscription/sub/expireMessages/2`))
  await backlog(topic, 1)
  same('left', ['new'], texts(await (await Inbox.open(topic)).take(1)))
})

function fail(name, why) {
  console.log(`FAIL node: ${name}: ${why}`)
  process.exit(1)
}

async function main() {
  for (const [i, { name, body }] of checks.entries()) {
    const late = setTimeout(() => fail(name, `expected an end within ${LIMIT / 1000} s, saw none`), LIMIT)
    const begin = Date.now()
    await body(`${RUN}-${i}`).catch((e) => fail(name, e instanceof Unexpected ? e.message : e.stack || e.name))
    clearTimeout(late)
    console.log(`ok node: ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`)
  }
  console.log(`node: ${checks.length} passed, 0 failed`)
  process.exit(0)
}

main()
