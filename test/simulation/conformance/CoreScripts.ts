/** Scripts about core NATS: delivery at most once, in order per connection, and interest that spreads between servers. */
import { failureOf } from "./Actions.ts"
import type { Client, Script, Stage } from "./Script.ts"

/** The messages that a client receives of a subject, as texts. */
const listen = ({ connection }: Client, subject: string): ReadonlyArray<string> => {
  const received: Array<string> = []
  connection.subscribe(subject, { callback: (_, message) => void received.push(message.string()) })
  return received
}

/** A client that answers every request. */
const answer = ({ connection }: Client, subject: string): void => {
  connection.subscribe(subject, { callback: (_, message) => void message.respond("") })
}

const ask = ({ connection }: Client, subject: string): Promise<string> =>
  connection.request(subject, "", { timeout: 500 }).then(() => "answered", failureOf)

const script = (name: string, shows: string, run: (stage: Stage) => Promise<string>): Script => ({
  name,
  shows,
  isClustered: false,
  run
})

const texts = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, at) => String(at))

export const coreScripts: ReadonlyArray<Script> = [
  script("a request without a listener", "503", async (stage) => ask(await stage.connect(), `${stage.name}.none`)),

  script("two subjects of one connection", "order per connection", async (stage) => {
    const [listener, sender] = [await stage.connect(), await stage.connect()]
    const received = listen(listener, `${stage.name}.*`)
    await listener.connection.flush()
    for (const [at, text] of texts(40).entries()) sender.connection.publish(`${stage.name}.${at % 2}`, text)
    await sender.connection.flush()
    await listener.connection.flush()
    return received.join() === texts(40).join() ? "in order" : `not in order: ${received.join()}`
  }),

  script("a connection breaks while its client sends", "a dead connection loses its buffers", async (stage) => {
    const [listener, sender] = [await stage.connect(), await stage.connect()]
    const received = listen(listener, `${stage.name}.*`)
    await listener.connection.flush()
    for (const text of texts(20)) {
      sender.connection.publish(`${stage.name}.0`, text)
      if (text !== "19") await stage.sleep(1)
    }
    sender.cut()
    await stage.sleep(300)
    await listener.connection.flush()
    if (received.join() !== texts(received.length).join()) return `not in order: ${received.join()}`
    return received.length === 20 ? "all arrive" : "the first arrive"
  }),

  script("a server is frozen", "a frozen server delivers late", async (stage) => {
    const [listener, sender] = [await stage.connect(), await stage.connect()]
    const received = listen(listener, `${stage.name}.*`)
    await listener.connection.flush()
    await stage.strike("freeze", 0)
    sender.connection.publish(`${stage.name}.0`, "0")
    await stage.sleep(300)
    const before = received.length
    await stage.heal()
    await stage.sleep(300)
    return `${before} before, ${received.length} after`
  }),

  script("a request to a client whose network is dead", "delivery to a dead connection", async (stage) => {
    const [listener, sender] = [await stage.connect(), await stage.connect()]
    answer(listener, `${stage.name}.0`)
    await listener.connection.flush()
    listener.hold()
    return ask(sender, `${stage.name}.0`)
  }),

  script("a request to a client that dies", "delivery to a dead connection", async (stage) => {
    const [listener, sender] = [await stage.connect(), await stage.connect()]
    answer(listener, `${stage.name}.0`)
    await listener.connection.flush()
    listener.cut()
    const first = await ask(sender, `${stage.name}.0`)
    await stage.sleep(50)
    return `${first}, then ${await ask(sender, `${stage.name}.0`)}`
  }),

  {
    ...script("a request over two servers right after the subscription", "a false 503", async (stage) => {
      const [listener, sender] = [await stage.connect(0), await stage.connect(1)]
      answer(listener, `${stage.name}.0`)
      await listener.connection.flush()
      const first = await ask(sender, `${stage.name}.0`)
      await stage.sleep(300)
      return `${first}, then ${await ask(sender, `${stage.name}.0`)}`
    }),
    isClustered: true
  }
]
