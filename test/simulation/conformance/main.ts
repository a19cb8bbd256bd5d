/**
 * `npm run simulate:model`: runs scripts against real servers of NATS and against the model, and exits with 1 if a real server
 * did something that is not possible in the model.
 *
 * MODEL_RUNS (50: how often each script runs against real servers), MODEL_SEEDS (2000: at most how many seeds of the model it gets),
 * MODEL_SERVERS (`single`: the nats-server on the PATH alone; `new`: a newer one alone; `cluster`: three of those; default: all),
 * MODEL_SCRIPTS (only scripts whose names contain this), NATS_SERVER (the program).
 */
import { NatsCluster } from "../../fixture/nats/NatsCluster.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { newNatsServer } from "../../fixture/nats/NewNatsServer.ts"
import { clusterScripts } from "./ClusterScripts.ts"
import { consumerScripts } from "./ConsumerScripts.ts"
import { coreScripts } from "./CoreScripts.ts"
import { keyValueScripts } from "./KeyValueScripts.ts"
import { runModel } from "./ModelStage.ts"
import { runReal } from "./RealStage.ts"
import type { Script } from "./Script.ts"
import { streamScripts } from "./StreamScripts.ts"

const times = Number(process.env["MODEL_RUNS"] ?? 50)
const seeds = Number(process.env["MODEL_SEEDS"] ?? 2_000)
const kinds = (process.env["MODEL_SERVERS"] ?? "single,new,cluster").split(",")
const words = process.env["MODEL_SCRIPTS"] ?? ""

const scripts = [...coreScripts, ...streamScripts, ...consumerScripts, ...keyValueScripts, ...clusterScripts]
  .filter(({ name }) => name.includes(words))

/** The outcomes of real servers that the model does not produce with any seed. */
const impossible = async (script: Script, outcomes: Iterable<string>): Promise<ReadonlyArray<string>> => {
  const missing = new Set(outcomes)
  for (let seed = 0; seed < seeds && missing.size > 0; seed++) missing.delete(await runModel(script, seed))
  return [...missing]
}

/** How many scripts run concurrently: they mostly wait. */
const lanes = 4

/** A script is repeated on new servers until it has enough outcomes, but no more often than this. */
const mostRounds = 10

interface Servers {
  readonly nodes: ReadonlyArray<NatsServer>
  readonly remove: () => Promise<void>
}

const startSingle = async (program?: string): Promise<Servers> => {
  const server = await NatsServer.start(program === undefined ? {} : { program })
  return { nodes: [server], remove: () => server.remove() }
}

/** How each kind of servers starts; the first two run the scripts for one server, the last one the others. */
const starts: Readonly<Record<string, () => Promise<Servers>>> = {
  single: () => startSingle(),
  new: async () => startSingle(await newNatsServer()),
  cluster: async () => NatsCluster.start({ program: await newNatsServer(), words: ["--no_advertise"] })
}

interface Play {
  readonly script: Script
  readonly kind: string
  readonly start: () => Promise<Servers>
  /** How often each outcome was seen. */
  readonly outcomes: Map<string, number>
}

const countOf = ({ outcomes }: Play): number => [...outcomes.values()].reduce((sum, count) => sum + count, 0)

const perform = async (play: Play): Promise<void> => {
  for (let round = 0; round < mostRounds && countOf(play) < times; round++) {
    const servers = await play.start()
    for (const [outcome, count] of await runReal(servers.nodes, play.script, times)) {
      play.outcomes.set(outcome, (play.outcomes.get(outcome) ?? 0) + count)
    }
    await servers.remove()
  }
}

const plays = kinds.flatMap((kind): ReadonlyArray<Play> => {
  const start = starts[kind]
  if (start === undefined) throw new Error(`MODEL_SERVERS: ${kind} is none of ${Object.keys(starts).join(", ")}`)
  return scripts
    .filter(({ isClustered }) => isClustered === (kind === "cluster"))
    .map((script) => ({ script, kind, start, outcomes: new Map() }))
})

const left = [...plays]
await Promise.all(Array.from({ length: lanes }, async () => {
  for (let play = left.shift(); play !== undefined; play = left.shift()) await perform(play)
}))

// one world at a time: it replaces Node's timers
let wrong = 0
for (const play of plays) {
  const { kind, outcomes, script } = play
  const missing = await impossible(script, outcomes.keys())
  const verdict = missing.length > 0 ? "WRONG" : countOf(play) < times ? "FEW  " : "ok   "
  console.log(`${verdict} ${kind}: ${script.name} (${script.shows})`)
  for (const [outcome, count] of outcomes) {
    console.log(`        ${count} × ${outcome}${missing.includes(outcome) ? " — not possible in the model" : ""}`)
  }
  wrong += verdict === "ok   " ? 0 : 1
}
const runs = plays.reduce((sum, play) => sum + countOf(play), 0)
console.log(
  `${plays.length} scripts, ${runs} runs, ${wrong} scripts with too few runs or outcomes that are not possible in the model`
)
process.exitCode = wrong === 0 ? 0 : 1
