/**
 * Each service's rights on NATS, on a real server with the production configuration: each does its work with its own identity,
 * and everything else is rejected.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { NatsConnection } from "@nats-io/nats-core"
import { nkeyAuthenticator, nkeys, PermissionViolationError } from "@nats-io/nats-core"
import { jetstreamManager } from "@nats-io/jetstream"
import { Kvm } from "@nats-io/kv"
import { connect } from "@nats-io/transport-node"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import {
  identities,
  type Identity,
  type NatsService,
  natsServices,
  permissionsOf
} from "../../../shared/bus/provision/Access.ts"
import { jobStream, queuesOf, versionsOf } from "../../../shared/bus/protocol/Subjects.ts"
import { buckets, bucketStream, stores, storeStream } from "../../../shared/nats/Storage.ts"
import { workloads } from "../../../shared/contract/Operation.ts"
import { placeOf } from "../../../shared/webhooks/Endpoints.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { Gateway, otherWorkloads, testAdminToken, testSecret } from "../../fixture/gateway/Gateway.ts"
import type { ServiceHere } from "../../fixture/gateway/ServiceHere.ts"
import { freePort, ServiceProcess } from "../../fixture/gateway/ServiceProcess.ts"
import type { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { SecureNats } from "../../fixture/nats/SecureNats.ts"
import { makeForgedProvider } from "../../fixture/openid/ForgedProvider.ts"
import { smallVideo, VideoClient } from "../../fixture/client/VideoClient.ts"

const scope = Scope.makeUnsafe()
let nats: SecureNats
let gateway: Gateway<NatsServer, ServiceHere>
/** A process, because a test kills it. */
let holder: ServiceProcess

beforeAll(async () => {
  nats = await SecureNats.start()
  await nats.provision()
  const make = Gateway.makeHereOn(nats.server, {
    services: otherWorkloads,
    environment: { GATEWAY_RESPONSES_MIB: "1" },
    environmentOf: (service) => nats.environmentOf(service as NatsService),
    providers: (baseUrl) =>
      `  limited: { protocol: openai, baseUrl: "${baseUrl}", limits: { requestsPerMinute: 600 } }`,
    models: [
      "  limited-chat: { workload: chat, targets: [{ provider: limited }] }",
      "  priced-video: { workload: video, targets: [{ provider: local }], price: { perSecond: 0.01 } }"
    ].join("\n")
  })
  gateway = await Effect.runPromise(Scope.provide(make, scope))
  holder = await startHolder()
})
afterAll(async () => {
  await holder?.remove()
  await Effect.runPromise(Scope.close(scope, Exit.void))
  await nats?.remove()
})

const startHolder = async (): Promise<ServiceProcess> => {
  const port = await freePort()
  const environment = {
    GATEWAY_CONFIG: gateway.catalogueFile,
    GATEWAY_SECRET: testSecret,
    HEALTH_PORT: String(port),
    ...nats.environmentOf("batches")
  }
  return (await ServiceProcess.start({ name: "batches", nats: nats.server, environment, port })).ready()
}

let console: Promise<ServiceHere> | undefined
const startConsole = () => console ??= gateway.startConsole()

/** The word for a missing right in the logs of server and services. */
const violation = /violation/i

const post = async (
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {}
): Promise<Response> => {
  const answer = await gateway.request(body, { path, headers })
  if (!answer.ok) assert.fail(`${path}: ${answer.status} ${await answer.text()}\n${gateway.log}`)
  return answer
}

const send = async (
  method: string,
  path: string,
  { body = null, headers }: { readonly body?: FormData | null; readonly headers?: Readonly<Record<string, string>> } =
    {}
) => {
  const answer = await fetch(`${gateway.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${gateway.key}`, ...headers },
    body
  })
  if (answer.status !== 200) assert.fail(`${path}: ${answer.status} ${await answer.text()}\n${gateway.log}`)
  return answer
}

const idIn = (text: string): string => /key_\w+/.exec(text)?.[0] ?? assert.fail(text)

/** A new key with a webhook. */
const announcedKey = async () => {
  const client = await ConsoleClient.signedIn((await startConsole()).port)
  const { body } = await client.send<{ readonly key: { readonly id: string } }>("POST", "/api/keys", { name: "a" })
  const { status } = await client.send("PUT", `/api/keys/${body.key.id}/webhook`, { url: "https://hooks.example" })
  assert.strictEqual(status, 200)
  return body.key
}

/** Whether an owner has a stored webhook, as the administrator sees it. */
const hasWebhook = async (owner: string): Promise<boolean> => {
  const admin = await connectAs({ service: "admin", account: "data", name: "admin" })
  const bucket = await new Kvm(admin).open(buckets.webhookEndpoints.name)
  const entry = await bucket.get(placeOf(owner))
  await admin.close()
  return entry?.operation === "PUT"
}

/** Of killed processes. */
const logs: Array<string> = []

describe("a service with only its own rights", () => {
  const hello = { model: "local-chat", messages: [{ role: "user", content: "The lighthouse is red. Which colour?" }] }

  // the first that starts the console, which later looks for such a consumer only from time to time
  it("recreates the consumer of a queue, as the console that starts", async () => {
    const admin = await connectAs({ service: "admin", account: "data", name: "admin" })
    const { consumers } = await jetstreamManager(admin)
    const filter = () =>
      consumers.info("JOBS3_RERANK", "default").then(({ config }) => config.filter_subject, () => "none")
    await consumers.delete("JOBS3_RERANK", "default")
    await startConsole()
    await eventually(filter, (subject) => subject === "jobs3.rerank.default")
    await admin.close()
  })

  it("answers a chat, streams one, and accepts a body too large for a message", async () => {
    assert.include(await (await post("/v1/chat/completions", hello)).text(), "lighthouse")
    assert.include(await (await post("/v1/chat/completions", { ...hello, stream: true })).text(), "[DONE]")
    const large = [...hello.messages, { role: "user", content: "word ".repeat(200_000) }]
    await (await post("/v1/chat/completions", { model: "local-chat", messages: large })).text()
  })

  it("applies a limit that all replicas share", async () => {
    await (await post("/v1/chat/completions", { ...hello, model: "limited-chat" })).text()
  })

  it("stores a compaction and finds it again", async () => {
    const first = await (await post("/v1/responses/compact", { model: "local-chat", input: hello.messages })).json()
    const { id } = first as { readonly id: string }
    const more = { model: "local-chat", input: hello.messages, previous_response_id: id }
    await (await post("/v1/responses/compact", more)).text()
  })

  it("stores a response, continues it, shows it and deletes it", async () => {
    const first = await (await post("/v1/responses", { model: "local-chat", input: "one" })).json()
    const { id } = first as { readonly id: string }
    await (await post("/v1/responses", { model: "local-chat", input: "two", previous_response_id: id })).text()
    for (const method of ["GET", "DELETE"]) await send(method, `/v1/responses/${id}`)
  })

  it("deletes an owner's oldest responses beyond its quota", async () => {
    const create = async () => {
      const answer = await post("/v1/responses", { model: "local-chat", input: "word ".repeat(150_000) })
      return (await answer.json() as { readonly id: string }).id
    }
    const headers = { authorization: `Bearer ${gateway.key}` }
    const first = await create()
    for (let count = 0; count < 2; count++) await create()
    const statusOf = async () => (await fetch(`${gateway.url}/v1/responses/${first}`, { headers })).status
    await eventually(statusOf, (status) => status === 404)
  })

  it("stores a file, lists it, reads it and deletes it", async () => {
    const form = new FormData()
    form.append("purpose", "batch")
    const line = { custom_id: "1", method: "POST", url: "/v1/embeddings", body: {} }
    form.append("file", new Blob([JSON.stringify(line)]), "a.jsonl")
    const { id } = await (await send("POST", "/v1/files", { body: form })).json() as { readonly id: string }
    assert.include(await (await send("GET", "/v1/files")).text(), id)
    assert.deepStrictEqual(await (await send("GET", `/v1/files/${id}/content`)).json(), line)
    await send("DELETE", `/v1/files/${id}`)
  })

  it("answers in the background, and the console sets its webhook, lists it and deletes it", async () => {
    const console = await ConsoleClient.signedIn((await startConsole()).port)
    const [key] = (await console.send<ReadonlyArray<{ readonly id: string }>>("GET", "/api/keys")).body
    const path = `/api/keys/${key?.id}/webhook`
    const set = () => console.send("PUT", path, { url: "http://127.0.0.1:9" })
    // workers send nothing to private addresses
    const untilFailed = (count: number) =>
      eventually(
        async () => (await console.send<ReadonlyArray<object>>("GET", `${path}/deliveries`)).body,
        (deliveries) => deliveries.filter((one) => Reflect.get(one, "status") === "failed").length === count
      )
    assert.strictEqual((await set()).status, 200)
    const answer = await post("/v1/responses", { model: "local-chat", input: "one", background: true })
    assert.strictEqual(answer.status, 200)
    const [delivery] = await untilFailed(1)
    assert.strictEqual(
      (await console.send("POST", `${path}/deliveries/${Reflect.get(delivery ?? {}, "id")}/resend`)).status,
      200
    )
    await untilFailed(1)
    assert.strictEqual((await console.send("DELETE", path)).status, 204)

    const listed = await console.send<{ readonly tasks: ReadonlyArray<{ readonly id: string }> }>("GET", "/api/tasks")
    const [task] = listed.body.tasks
    assert.strictEqual((await console.send("POST", `/api/tasks/${task?.id}/cancel`)).status, 200)
    assert.strictEqual((await console.send("DELETE", `/api/tasks/${task?.id}`)).status, 204)

    const other = await post("/v1/responses", { model: "local-chat", input: "two", background: true })
    await send("DELETE", `/v1/responses/${Reflect.get(await other.json() as object, "id")}`)
  })

  it("streams a response in the background, and again from an event on", async () => {
    const body = { model: "local-chat", input: "one two three", background: true, stream: true }
    const stream = await (await post("/v1/responses", body)).text()
    const id = /resp_[0-9a-f]{32}/.exec(stream)?.[0] ?? assert.fail(stream)
    const rest = await (await send("GET", `/v1/responses/${id}?stream=true&starting_after=2`)).text()
    assert.isTrue(stream.endsWith(rest))
    assert.isNotEmpty(rest)
    await post(`/v1/responses/${id}/cancel`, {})
  })

  it("performs a request later, lists its task, shows its events and content, stops it and deletes it", async () => {
    const create = async (model: string, stream: boolean) => {
      const answer = await post("/v1/chat/completions", { ...hello, model, stream }, { prefer: "respond-async" })
      return (await answer.json() as { readonly id: string }).id
    }
    const id = await create("local-chat", true)
    const events = await (await send("GET", `/v1/tasks/${id}/events`, { headers: { "last-event-id": "1" } })).text()
    assert.include(events, "[DONE]")
    assert.include(await (await send("GET", `/v1/tasks/${id}/content`)).text(), "[DONE]")
    gateway.provider.behaveOnce({ kind: "silent" })
    const running = await create("limited-chat", false)
    await gateway.provider.until(() => gateway.provider.open === 1)
    await post(`/v1/tasks/${running}/cancel`, {})
    await gateway.provider.until(() => gateway.provider.open === 0)
    const listed = await (await send("GET", "/v1/tasks")).text()
    for (const task of [id, running]) {
      assert.include(listed, task)
      await send("DELETE", `/v1/tasks/${task}`)
    }
  })

  it("repeats the answer to a request with an idempotency key", async () => {
    const ask = () => post("/v1/chat/completions", hello, { "idempotency-key": "once" })
    const first = await (await ask()).text()
    const again = await ask()
    assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
    assert.strictEqual(await again.text(), first)
  })

  it("performs batches in either form, with large requests and answers, stops one, and deletes them", async () => {
    const client = new BatchClient(gateway)
    const done = await client.ended((await client.create("local-chat", 20)).id)
    assert.deepInclude(done.request_counts, { completed: 20 })
    await client.results(done)

    const long = [{ role: "user", content: "word ".repeat(100_000) }]
    const params = { model: "local-chat", max_tokens: 10, messages: long }
    const made = await post("/v1/messages/batches", { requests: [{ custom_id: "a", params }] })
    const { id } = await made.json() as { readonly id: string }
    await client.ended(id.replace("msgbatch", "batch"))
    assert.include(await (await send("GET", `/v1/messages/batches/${id}/results`)).text(), "succeeded")
    assert.include(await (await send("GET", "/v1/messages/batches")).text(), id)
    await send("DELETE", `/v1/messages/batches/${id}`)

    const embedded = await client.create("local-embedding", 2, {
      endpoint: "/v1/embeddings",
      body: { input: Array.from({ length: 200 }, (_, at) => `text ${at}`) }
    })
    assert.deepInclude((await client.ended(embedded.id)).request_counts, { completed: 2 })

    gateway.provider.behave({ kind: "silent" })
    const running = await client.create("limited-chat", 2)
    await gateway.provider.until(() => gateway.provider.open === 2)
    await client.cancel(running.id)
    assert.deepInclude(await client.ended(running.id), {
      status: "cancelled",
      request_counts: { total: 2, completed: 0, failed: 2 }
    })
    gateway.provider.behave({ kind: "answer" })
    assert.include(await (await send("GET", "/v1/batches")).text(), running.id)
    const console = await ConsoleClient.signedIn((await startConsole()).port)
    assert.strictEqual((await console.send("POST", `/api/tasks/${running.id}/cancel`)).status, 200)
    assert.strictEqual((await console.send("DELETE", `/api/tasks/${running.id}`)).status, 204)
  })

  it("goes on with a batch whose service was killed", async () => {
    const client = new BatchClient(gateway)
    gateway.provider.behave({ kind: "paced", chunks: 1, everyMs: 50 })
    const { id } = await client.create("limited-chat", 100)
    await client.untilDone(id, 10)
    await holder.kill()
    logs.push(holder.log)
    holder = await startHolder()
    // NATS gives the lines of the killed service to the new one only after a while
    assert.deepInclude((await client.ended(id)).request_counts, { completed: 100 })
    gateway.provider.behave({ kind: "answer" })
  })

  it("embeds, ranks and speaks", async () => {
    await (await post("/v1/embeddings", { model: "local-embedding", input: "one" })).text()
    await (await post("/v1/rerank", { model: "local-rerank", query: "bees", documents: ["a", "b"] })).text()
    await (await post("/v1/audio/speech", { model: "local-speech", input: "Hello", voice: "nova" })).arrayBuffer()
  })

  it("paints a picture and serves it at its URL", async () => {
    const body = { model: "local-image", prompt: "a boat", size: "64x64", response_format: "url" }
    const { data } = await (await post("/v1/images/generations", body)).json() as { data: Array<{ url: string }> }
    const picture = await fetch(data[0]?.url ?? "")
    assert.strictEqual(picture.headers.get("content-type"), "image/png")
  })

  it("reserves the cost of a video, makes it and serves it", async () => {
    const client = new VideoClient(gateway)
    const id = await client.create({ ...smallVideo, model: "priced-video" })
    await eventually(() => client.show(id), ({ status }) => status === "completed")
    const content = await client.request(`/${id}/content`)
    assert.strictEqual(content.status, 200)
    assert.isAbove((await content.arrayBuffer()).byteLength, 500)
  })

  it("creates, lists and revokes keys as the administrator", async () => {
    const key = await gateway.createKey("2999-01-01")
    const listed = (await gateway.admin("keys", "list")).split("\n").find((line) => line.includes("2999-01-01")) ?? ""
    await gateway.admin("keys", "revoke", listed.split(" ")[0] ?? "")
    const models = () => fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
    await eventually(async () => (await models()).status, (status) => status === 401)
  })

  it("removes the webhook of a revoked key as the administrator, unless another key has replaced it", async () => {
    const { id } = await announcedKey()
    const replacement = idIn(await gateway.admin("keys", "replace", id))
    await gateway.admin("keys", "revoke", id)
    assert.isTrue(await hasWebhook(id))
    await gateway.admin("keys", "revoke", replacement)
    assert.isFalse(await hasWebhook(id))
  })

  it("counts usage, and lists keys with their usage, as the console; the administrator reads it", async () => {
    const { url } = await startConsole()
    const keys = async () => {
      const answer = await fetch(`${url}/api/keys`, { headers: { authorization: `Bearer ${testAdminToken}` } })
      return await answer.json() as ReadonlyArray<{ readonly name: string; readonly requestsThisMonth: number }>
    }
    const isCounted = ({ name, requestsThisMonth }: Awaited<ReturnType<typeof keys>>[number]) =>
      name === "test" && requestsThisMonth > 0
    await eventually(keys, (keys) => keys.some(isCounted))
    assert.match(await gateway.admin("usage"), /requests [1-9]/)
  })

  it.effect("ends the sessions of a person who signs out at the OpenID provider, as the console", () =>
    Effect.gen(function*() {
      const provider = yield* makeForgedProvider("console")
      const { url } = yield* Effect.promise(() =>
        gateway.startConsole({
          CONSOLE_PUBLIC_URL: "https://console.example",
          CONSOLE_OIDC_ISSUER: provider.issuer,
          CONSOLE_OIDC_CLIENT_ID: "console",
          CONSOLE_OIDC_CLIENT_SECRET: "a secret",
          CONSOLE_OIDC_ROLES: "{ operators: admin }"
        })
      )
      assert.strictEqual(yield* Effect.promise(() => provider.logOut(url)), 200)
    }))

  // the last of these tests: it covers all of them
  it("has requested nothing beyond its rights", () => {
    assert.notMatch(nats.server.log, violation)
    for (const log of [...logs, holder.log, gateway.log]) assert.notMatch(log, violation)
  })
})

describe("an administrator with the seed for keys alone", () => {
  it("revokes a key, and reads how to remove its webhook", async () => {
    const { id } = await announcedKey()
    const { NATS_NKEY_SEED: _, ...environment } = nats.environmentOf("admin")
    const log = await gateway.adminWith(environment, "keys", "revoke", id)
    assert.include(log, `revoked ${id}`)
    assert.include(log, `nats kv del WEBHOOK_ENDPOINTS -- ${placeOf(id)}`)
    assert.notInclude(await gateway.admin("keys", "list"), id)
    assert.isTrue(await hasWebhook(id))
  })
})

describe("provisioning", () => {
  it("changes nothing the second time", async () => {
    const lines = await nats.provision()
    assert.isAbove(lines.length, workloads.length + Object.keys(buckets).length)
    assert.deepStrictEqual(lines.filter((line) => !line.endsWith(": unchanged")), [])
  })
})

/** The subjects that each identity must be denied. A publication alone tests it: the server checks rights first. */
const forbidden = (
  identity: Pick<Identity, "account" | "service">
): { publish: ReadonlyArray<string>; subscribe: ReadonlyArray<string> } => {
  const all = {
    publish: [
      ...workloads.flatMap((workload) => [
        `jobs.${workload}.default`,
        `jobs3.${workload}.default`,
        `jobs3.${workload}-tasks.default.owner`,
        `r.${workload}.anyone.job.1`,
        ...queuesOf(workload).flatMap((queue) => versionsOf(queue).map((version) => jobStream(queue, version))).flatMap(
          (stream) => [
            `$JS.API.CONSUMER.MSG.NEXT.${stream}.default`,
            `$JS.ACK.${stream}.default.1.1.1.1.1`
          ]
        )
      ]),
      ...Object.values(buckets).flatMap((bucket) => [
        `$KV.${bucket.name}.any`,
        `$JS.API.STREAM.MSG.GET.${bucketStream(bucket)}`,
        `$JS.API.DIRECT.GET.${bucketStream(bucket)}.$KV.${bucket.name}.any`,
        `$JS.API.CONSUMER.CREATE.${bucketStream(bucket)}.any.>`
      ]),
      ...Object.values(stores).flatMap((store) => [
        `$O.${store.name}.C.any`,
        `$JS.API.STREAM.MSG.GET.${storeStream(store)}`
      ]),
      "ctl.chat.anyone.job.1",
      "in.chat.anyone.job.1",
      "$JS.API.STREAM.CREATE.OTHER",
      "$JS.API.STREAM.DELETE.JOBS_CHAT",
      "$JS.API.STREAM.PURGE.JOBS_CHAT",
      "$JS.API.STREAM.DELETE.JOBS3_CHAT",
      "$JS.API.CONSUMER.CREATE.JOBS_CHAT.other",
      "$SYS.REQ.SERVER.PING",
      "anything"
    ],
    subscribe: [
      ...natsServices.map((other) => `_INBOX.${other}.>`),
      "presence",
      ...workloads.flatMap((workload) => [`ctl.${workload}.>`, `in.${workload}.>`, `r.${workload}.>`]),
      "r.>",
      "jobs.>",
      "jobs3.>",
      "$KV.>",
      "$JS.>",
      "_INBOX.>",
      ">"
    ]
  }
  const { publish, subscribe } = permissionsOf(identity)
  const unless = (allowed: ReadonlyArray<string>) => (subject: string) => !allowed.some((one) => covers(one, subject))
  return { publish: all.publish.filter(unless(publish)), subscribe: all.subscribe.filter(unless(subscribe)) }
}

/** Whether the first pattern covers every subject of the second. */
const covers = (pattern: string, subject: string): boolean => {
  const [wide, narrow] = [pattern.split("."), subject.split(".")]
  return wide.every((token, at) =>
    token === ">" ? at < narrow.length : token === narrow[at] || (token === "*" && narrow[at] !== ">")
  ) && (wide.at(-1) === ">" || wide.length === narrow.length)
}

const connectAs = ({ account, service }: Identity): Promise<NatsConnection> =>
  connect({ ...nats.optionsOf(service, account), reconnect: false })

/** Those of these subjects that the server denies. */
const refused = async (connection: NatsConnection, { publish, subscribe }: ReturnType<typeof forbidden>) => {
  const subjects = { publish: new Set<string>(), subscription: new Set<string>() }
  const listening = (async () => {
    for await (const status of connection.status()) {
      if (status.type === "error" && status.error instanceof PermissionViolationError) {
        subjects[status.error.operation].add(status.error.subject)
      }
    }
  })()
  for (const subject of publish) connection.publish(subject)
  for (const subject of subscribe) connection.subscribe(subject, { callback: () => {} })
  await connection.flush()
  await connection.close()
  await listening
  return { publish: [...subjects.publish], subscribe: [...subjects.subscription] }
}

describe("the server denies", () => {
  it.each(identities)("$name everything outside its work", async (identity) => {
    const wanted = forbidden(identity)
    assert.isAbove(wanted.subscribe.length, 10)
    assert.deepStrictEqual(await refused(await connectAs(identity), wanted), wanted)
    await eventually(async () => nats.server.log, (log) => violation.test(log))
  })

  // the table above omits what the table of rights allows; these guard against rights that grow unnoticed
  it.each(
    [
      ["chat", "$JS.API.CONSUMER.MSG.NEXT.JOBS_VIDEO.default"],
      ["chat", "jobs.chat.default"],
      ["chat", "jobs3.chat.default"],
      ["chat", "$JS.API.STREAM.MSG.GET.KV_API_KEYS"],
      ["chat", "r.images.anyone.job.1"],
      ["ingress", "$KV.API_KEYS.any"],
      ["ingress", "$KV.LIMITS.any"],
      ["chat", "$KV.KEY_LIMITS.any"],
      ["ingress", "$JS.API.CONSUMER.MSG.NEXT.JOBS_CHAT.default"],
      ["ingress", "$JS.API.STREAM.CREATE.OTHER"],
      ["video", "$KV.API_KEYS.any"],
      ["admin", "$KV.WEBHOOK_DELIVERIES.any"],
      ["admin", "jobs.chat.default"]
    ] satisfies ReadonlyArray<readonly [NatsService, string]>
  )("%s a publication to %s", (service, subject) => {
    assert.include(forbidden({ service, account: "data" }).publish, subject)
  })
  it.each(
    [
      ["ingress", "$KV.API_KEYS.any"],
      ["ingress", "$KV.USAGE_SPEND.any"],
      ["ingress", "jobs.chat.default"],
      ["console", "$KV.KEY_LIMITS.any"],
      ["admin", "$KV.USAGE_SPEND.any"]
    ] satisfies ReadonlyArray<readonly [NatsService, string]>
  )("%s a publication to %s in the control account", (service, subject) => {
    assert.include(forbidden({ service, account: "control" }).publish, subject)
  })
  it("every worker an identity in the control account", () => {
    const services = identities.filter(({ account }) => account === "control").map(({ service }) => service)
    assert.deepStrictEqual(services, ["ingress", "console", "admin"])
  })
  it.each(
    [
      ["chat", "r.>"],
      ["chat", "r.chat.>"],
      ["chat", "_INBOX.ingress.>"],
      ["chat", "ctl.video.>"],
      ["admin", "r.>"]
    ] satisfies ReadonlyArray<readonly [NatsService, string]>
  )("%s a subscription to %s", (service, subject) => {
    assert.include(forbidden({ service, account: "data" }).subscribe, subject)
  })

  it("an unknown identity, and a connection without TLS", async () => {
    const stranger = nkeys.createUser().getSeed()
    const options = { servers: nats.server.url, reconnect: false, tls: { caFile: join(nats.folder, "ca.pem") } }
    const errorOf = (promise: Promise<unknown>) => promise.then(() => "connected", (error: Error) => error.message)
    assert.match(
      await errorOf(connect({ ...options, authenticator: nkeyAuthenticator(stranger) })),
      /Authorization/i
    )
    assert.match(await errorOf(connect(options)), /Authorization/i)
    assert.notStrictEqual(
      await errorOf(connect({ servers: nats.server.url, reconnect: false, tls: null })),
      "connected"
    )
  })
})
