/**
 * `npm run simulate:model`: runs scripts against real servers of NATS and against the model, and exits with 1 if a real server
 * did something that is not possible in the model.
 *
 * MODEL_RUNS (50: how often each script runs against real servers), MODEL_SEEDS (2000: how often at most against the model),
 * MODEL_SERVERS (`single`: the nats-server on the PATH alone; `cluster`: three of a newer one; default: both),
 * MODEL_SCRIPTS (only scripts whose name has this), NATS_SERVER (the program).
 */
import { NatsCluster } from "../../fixture/nats/NatsCluster.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { newNatsServer } from "../../fixture/nats/NewNatsServer.ts"
import { clusterScripts } from "./ClusterScripts.ts"
import { consumerScripts } from "./ConsumerScripts.ts"
import { coreScripts } from "./CoreScripts.ts"
import { runModel } from "./ModelStage.ts"
import { runReal } from "./RealStage.ts"
import type { Script } from "./Script.ts"
import { streamScripts } from "./StreamScripts.ts"

const times = Number(process.env["MODEL_RUNS"] ?? 50)
const seeds = Number(process.env["MODEL_SEEDS"] ?? 2_000)
const servers = process.env["MODEL_SERVERS"] ?? "single,cluster"
const words = process.env["MODEL_SCRIPTS"] ?? ""

const scripts = [...coreScripts, ...streamScripts, ...consumerScripts, ...clusterScripts]
  .filter(({ name }) => name.includes(words))

/** The outcomes that the model does not have in so many seeds. */
const impossible = async (script: Script, outcomes: Iterable<string>): Promise<ReadonlyArray<string>> => {
  const missing = new Set(outcomes)
  for (let seed = 0; seed < seeds && missing.size > 0; seed++) missing.delete(await runModel(script, seed))
  return [...missing]
}

/** So many servers alone work at the same time: scripts mostly wait. */
const lanes = 6

interface Seen {
  readonly script: Script
  readonly outcomes: ReadonlyMap<string, number>
}
const seen: Array<Seen> = []
const play = async (nodes: ReadonlyArray<NatsServer>, script: Script): Promise<void> =>
  void seen.push({ script, outcomes: await runReal(nodes, script, times) })

if (servers.includes("single")) {
  const left = scripts.filter(({ isClustered }) => !isClustered)
  await Promise.all(Array.from({ length: lanes }, async () => {
    const server = await NatsServer.start()
    for (let script = left.shift(); script !== undefined; script = left.shift()) await play([server], script)
    await server.remove()
  }))
}
if (servers.includes("cluster")) {
  const cluster = await NatsCluster.start({ program: await newNatsServer(), words: ["--no_advertise"] })
  for (const script of scripts) {
    if (!script.isClustered) continue
    await play(cluster.nodes, script)
    await cluster.untilWhole()
  }
  await cluster.remove()
}

// one world at a time: it replaces Node's timers
let wrong = 0
for (const { outcomes, script } of seen) {
  const missing = await impossible(script, outcomes.keys())
  console.log(`${missing.length === 0 ? "ok   " : "WRONG"} ${script.name} (${script.shows})`)
  for (const [outcome, count] of outcomes) {
    console.log(`        ${count} × ${outcome}${missing.includes(outcome) ? " — not possible in the model" : ""}`)
  }
  wrong += missing.length
}
console.log(`${seen.length} scripts, ${wrong} outcomes that are not possible in the model`)
process.exitCode = wrong === 0 ? 0 : 1
