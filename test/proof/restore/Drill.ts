/**
 * The restore drill of the guide: a gateway with production's rights loses all of NATS and every process. After the restore of a
 * backup, keys, teams, usage and responses must be as before, and tasks and a batch must continue. Then the restored NATS is backed up,
 * lost and restored itself.
 */
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { NatsService } from "../../../shared/bus/provision/Access.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { ServiceName } from "../../../shared/telemetry/ServiceName.ts"
import { TeamStore } from "../../../shared/teams/TeamStore.ts"
import * as TeamsOfKeys from "../../../shared/teams/TeamsOfKeys.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { chat } from "../../fixture/client/ChatClient.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { SecureNats } from "../../fixture/nats/SecureNats.ts"
import { usageProcess } from "../../fixture/nats/UsageEvents.ts"

/** A check that something is as before, or continues. */
export interface Check {
  readonly what: string
  readonly before: string
  readonly after: string
  readonly holds: boolean
}

export interface DrillReport {
  readonly checks: ReadonlyArray<Check>
  /** How long each step took, in milliseconds. */
  readonly steps: Readonly<Record<string, number>>
  /** The contents of the backup. */
  readonly saved: ReadonlyArray<string>
}

const lines = 12
const linesBefore = 4
const requests = 6

/** The models of the work that runs while NATS is lost. */
const held = ["free-chat", "batched-chat"]

/** How long work may take to continue, in milliseconds. Jobs of lost workers are delivered again after six seconds. */
const patienceMs = 60_000

interface Ground {
  readonly nats: SecureNats
  readonly gateway: Gateway
  readonly folder: string
}

export const makeGround: Effect.Effect<Ground, never, Scope.Scope> = Effect.gen(function*() {
  const nats = yield* Effect.acquireRelease(
    Effect.promise(() => SecureNats.start()),
    (nats) => Effect.promise(() => nats.remove())
  )
  yield* Effect.promise(() => nats.provision())
  const gateway = yield* Gateway.makeOn(nats.server, {
    services: ["batches"],
    environment: { WORKER_TASK_SLOTS: "2" },
    environmentOf: (service) => nats.identityOf(service as NatsService),
    models: ["priced-chat", "batched-chat"].map((name) =>
      `  ${name}: { workload: chat, targets: [{ provider: free }], price: { inputPerMillion: 1000000 } }`
    ).join("\n")
  })
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "restore-drill-"))),
    (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
  )
  return { nats, gateway, folder }
})

/** Creates a team, which only the console may do. */
const createTeam = ({ nats }: Ground): Promise<string> =>
  Effect.gen(function*() {
    const layer = TeamStore.layer.pipe(Layer.provide(KeyStore.layer))
    const context = yield* usageProcess(nats.server, layer, nats.environmentOf("console"))
    return (yield* Context.get(context, TeamStore).create({ name: "drill", monthlyBudgetUsd: 1_000 })).id
  }).pipe(Effect.scoped, Effect.provideService(ServiceName, "console"), Effect.runPromise)

/** Counts usage with the rights of the console; returns a function that stops it. */
const count = async ({ nats }: Ground): Promise<() => Promise<void>> => {
  const scope = Scope.makeUnsafe()
  const layer = UsageCounters.layer.pipe(Layer.provide(TeamsOfKeys.layer))
  const started = usageProcess(nats.server, layer, nats.environmentOf("console")).pipe(
    Effect.provideService(ServiceName, "console")
  )
  await Effect.runPromise(Scope.provide(started, scope))
  return () => Effect.runPromise(Scope.close(scope, Exit.void))
}

interface Response {
  readonly id: string
  readonly status: string
}

/** Clients of the newest ingress. */
const clients = ({ gateway }: Ground, key: string) => {
  const url = () => gateway.ingresses.at(-1)?.url ?? ""
  const headers = { "authorization": `Bearer ${key}`, "content-type": "application/json" }
  const responses = async (path: string, body?: object): Promise<Response> => {
    const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) }
    const answer = await fetch(`${url()}/v1/responses${path}`, init)
    return await answer.json() as Response
  }
  const ask = async (secret = key) => {
    const init = { method: "POST", body: JSON.stringify(chat("priced-chat")) }
    const answer = await fetch(`${url()}/v1/chat/completions`, {
      ...init,
      headers: { ...headers, authorization: `Bearer ${secret}` }
    })
    await answer.arrayBuffer()
    return answer.status
  }
  const batches = new BatchClient({
    key,
    get url() {
      return url()
    }
  })
  return { responses, ask, batches }
}

export const drill = async (ground: Ground, log: (line: string) => void): Promise<DrillReport> => {
  const { folder, gateway, nats } = ground
  const { provider } = gateway
  const steps: Record<string, number> = {}
  const step = async <A>(name: string, take: () => Promise<A>): Promise<A> => {
    const start = performance.now()
    const result = await take()
    steps[name] = Math.round(performance.now() - start)
    log(`${name}: ${steps[name]} ms`)
    return result
  }
  const usage = () => gateway.admin("usage", "--by", "key,model,operation")
  const keysListed = () => gateway.admin("keys", "list")

  const team = await createTeam(ground)
  const { key } = await gateway.createKeyWith({ team, monthlyBudgetUsd: 500 })
  const revoked = await gateway.createKeyWith({})
  await gateway.admin("keys", "revoke", revoked.id)
  const client = clients(ground, key)

  // usage, counted, and a stored response
  const endCounting = await count(ground)
  for (let request = 0; request < requests; request++) await client.ask()
  const stored = await client.responses("", { model: "free-chat", input: "Remember this." })
  const storedBefore = JSON.stringify(await client.responses(`/${stored.id}`))

  // a response in progress, a batch that is partly done, and a response that waits
  for (const model of held) provider.behave({ kind: "silent" }, { model })
  provider.behaveInTurn("batched-chat", { kind: "answer", times: linesBefore })
  const running = await client.responses("", { model: "free-chat", input: "Think.", background: true })
  await provider.until(() => provider.open === 1)
  const batch = await client.batches.create("batched-chat", lines)
  await client.batches.untilDone(batch.id, linesBefore, patienceMs)
  await provider.until(() => provider.open === 2)
  const waiting = await client.responses("", { model: "free-chat", input: "Wait.", background: true })
  const keysBefore = await keysListed()
  // the lines of the batch are the last events
  const isCounted = (text: string) =>
    text.split("\n").some((line) => line.includes("batched-chat") && new RegExp(`\\b${linesBefore}\\b`).test(line))
  const usageBefore = await eventually(usage, isCounted, patienceMs)

  await endCounting()
  const backup = join(folder, "backup")
  const saved = await step("backup", () => gateway.admin("backup", backup))
  const loseAll = async () => {
    await nats.server.kill()
    nats.server.loseStore()
    await Promise.all(gateway.processes.filter(({ hasExited }) => !hasExited).map((process) => process.kill()))
  }
  await step("loss of NATS and of every process", loseAll)
  for (const model of held) provider.behave({ kind: "answer" }, { model })
  await step("an empty NATS", () => nats.server.restart())
  await step("restore", () => gateway.admin("restore", backup))
  await step("provision", () => nats.provision())
  const keysAfter = await keysListed()
  const usageAfter = await usage()
  await step(
    "start of the gateway",
    () => Promise.all([gateway.startIngress(), gateway.startWorker(), gateway.startWorker({}, "batches")])
  )

  const endCountingAgain = await count(ground)
  const status = { answered: await client.ask(), refused: await client.ask(revoked.key) }
  const storedAfter = JSON.stringify(await client.responses(`/${stored.id}`))
  const ended = (id: string) =>
    eventually(
      () => client.responses(`/${id}`),
      ({ status }) => status !== "queued" && status !== "in_progress",
      patienceMs
    )
  const done = await step("what continues", async () => ({
    running: (await ended(running.id)).status,
    waiting: (await ended(waiting.id)).status,
    batch: await client.batches.ended(batch.id, patienceMs)
  }))
  const { answers, errors } = await client.batches.results(done.batch)

  /** The keys whose requests only show that everything before is counted. */
  const markers: Array<string> = []
  /** What keys have used and what it cost, once the request of a further key is counted; without such keys. */
  const counted = async (): Promise<string> => {
    const other = await gateway.createKeyWith({})
    markers.push(other.id)
    await client.ask(other.key)
    const all = await eventually(
      () => gateway.admin("usage", "--by", "key,team,model", "--csv"),
      (text) => text.includes(other.id),
      patienceMs
    )
    return all.split("\n").filter((line) => !markers.some((id) => line.includes(id))).join("\n")
  }
  /** What must survive a restore as it is. */
  const state = async () => ({
    keys: await keysListed(),
    response: JSON.stringify(await client.responses(`/${stored.id}`)),
    task: JSON.stringify(await client.responses(`/${running.id}`)),
    files: JSON.stringify(await client.batches.results(done.batch))
  })
  // a NATS that was restored is restored again
  const first = { usage: await counted(), ...await state() }
  await endCountingAgain()
  const secondBackup = join(folder, "second-backup")
  await gateway.admin("backup", secondBackup)
  await loseAll()
  await nats.server.restart()
  await step("restore of the restored NATS", () => gateway.admin("restore", secondBackup))
  await nats.provision()
  await Promise.all([gateway.startIngress(), gateway.startWorker(), gateway.startWorker({}, "batches")])
  const endCountingAtLast = await count(ground)
  const kept = await state()
  const second = { usage: await counted(), ...kept }
  await endCountingAtLast()

  const same = (what: string, before: string, after: string, show = (text: string) => text): Check => ({
    what,
    before: show(before),
    after: before === after ? "the same" : show(after),
    holds: before === after
  })
  const becomes = (what: string, before: string, expected: string, after: string): Check => ({
    what,
    before,
    after,
    holds: after === expected
  })
  const byteCount = (text: string) => `${text.length} bytes`
  const lineCount = (text: string) => `${text.trim().split("\n").length} lines`
  return {
    steps,
    saved: saved.trim().split("\n"),
    checks: [
      same("keys, with their teams, limits and budgets", keysBefore, keysAfter, lineCount),
      same("usage by key, model and operation", usageBefore, usageAfter, lineCount),
      same("a stored response", storedBefore, storedAfter, byteCount),
      becomes("a request with a restored key", "200", "200", String(status.answered)),
      becomes("a request with a key that was revoked", "401", "401", String(status.refused)),
      becomes("a response in the background whose worker was calling", "in_progress", "completed", done.running),
      becomes("a response in the background that waited", "queued", "completed", done.waiting),
      becomes(
        `a batch of ${lines} requests`,
        `${linesBefore} answers`,
        `${lines} answers, 0 errors`,
        `${answers.length} answers, ${errors.length} errors`
      ),
      same("after a second restore, keys", first.keys, second.keys, lineCount),
      same("after a second restore, usage and cost by key and team", first.usage, second.usage, lineCount),
      same("after a second restore, a stored response", first.response, second.response, byteCount),
      same("after a second restore, a response in the background", first.task, second.task, byteCount),
      same("after a second restore, the results of the batch", first.files, second.files, byteCount)
    ]
  }
}
