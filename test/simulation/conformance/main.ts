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

let wrong = 0
const compare = async (nodes: ReadonlyArray<NatsServer>, script: Script): Promise<void> => {
  const outcomes = await runReal(nodes, script, times)
  const missing = await impossible(script, outcomes.keys())
  const { name, shows } = script
  console.log(`${missing.length === 0 ? "ok   " : "WRONG"} ${name} (${shows})`)
  for (const [outcome, count] of outcomes) {
    console.log(`        ${count} × ${outcome}${missing.includes(outcome) ? " — not possible in the model" : ""}`)
  }
  wrong += missing.length
}

if (servers.includes("single")) {
  const server = await NatsServer.start()
  for (const script of scripts) if (!script.isClustered) await compare([server], script)
  await server.remove()
}
if (servers.includes("cluster")) {
  const cluster = await NatsCluster.start({ program: await newNatsServer(), words: ["--no_advertise"] })
  for (const script of scripts) {
    if (!script.isClustered) continue
    await compare(cluster.nodes, script)
    await cluster.untilWhole()
  }
  await cluster.remove()
}
console.log(`${scripts.length} scripts, ${wrong} outcomes that are not possible in the model`)
process.exitCode = wrong === 0 ? 0 : 1
