/** A guardrail between a client and a provider, both over HTTP, without a gateway around them. */
import { Clock, ConfigProvider, Context, Effect, Exit, Layer } from "effect"
import { Catalogue, parse } from "../../../shared/catalogue/Catalogue.ts"
import type { JobError } from "../../../shared/contract/JobError.ts"
import type { Operation, Workload } from "../../../shared/contract/Operation.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import { Guardrail } from "../../../shared/guardrail/Guardrail.ts"
import { Limits } from "../../../shared/limits/Limits.ts"
import { ResultStore } from "../../../shared/provider/call/ResultStore.ts"
import { LocalEngines } from "../../../shared/provider/protocols/local/Local.ts"
import { Providers } from "../../../shared/provider/routing/Providers.ts"
import { SharedLimits } from "../../../shared/provider/routing/SharedLimits.ts"
import { GuardedFetch } from "../../../shared/provider/transport/GuardedFetch.ts"
import type { Head, Sink } from "../../../shared/provider/transport/Sink.ts"
import { Upstream } from "../../../shared/provider/transport/Upstream.ts"
import type { Work } from "../../../shared/worker/JobLife.ts"
import { FakeProvider } from "../../fixture/provider/FakeProvider.ts"
import { HookServer } from "../../fixture/guardrail/HookServer.ts"
import { secretsIn } from "../../fixture/ProviderKey.ts"

/** What came of a request. */
export interface Outcome {
  readonly head: Head | undefined
  /** What has left to the client. */
  readonly text: string
  readonly error: JobError | undefined
  readonly checked: Readonly<Record<string, string>>
  /** The usage of a call whose answer the client did not get whole. */
  readonly cut: Usage | undefined
  readonly usage: Usage | undefined
}

class ClientSink implements Sink {
  head: Head | undefined
  readonly pieces: Array<Uint8Array> = []

  get hasStarted(): boolean {
    return this.head !== undefined
  }

  get text(): string {
    return Buffer.concat(this.pieces).toString()
  }

  start(head: Head): void {
    this.head = head
  }

  write(bytes: Uint8Array): boolean {
    this.pieces.push(bytes)
    return false
  }

  onDrain(resume: () => void): void {
    setImmediate(resume)
  }
}

/** `settings` of the guardrail are YAML, such as `onUnreachable: open`. */
export const guarded = Effect.fnUntraced(function*(workload: Workload, settings = "", url?: string) {
  const hook = yield* HookServer.make
  const provider = yield* FakeProvider.make()
  const snapshot = yield* parse(
    "gateway.yaml",
    `
guardrail: { url: "${url ?? hook.url}", secret: "\${HOOK_SECRET}", headers: { x-team: blue }, ${settings} }
providers:
  openai: { protocol: openai, baseUrl: "${provider.baseUrl}", retry: { times: 0 } }
models:
  guarded: { workload: ${workload}, targets: [{ provider: openai }] }
  free: { workload: ${workload}, guardrail: { checks: [] }, targets: [{ provider: openai }] }`
  )
  const tools = Layer.mergeAll(Upstream.layer, secretsIn({ HOOK_SECRET: "hook-secret" }))
  const catalogue = Layer.succeed(Catalogue, { current: () => snapshot })
  const built = yield* Layer.build(
    Layer.mergeAll(Providers.layer, Guardrail.layer).pipe(Layer.provide([
      catalogue,
      Layer.succeed(LocalEngines, { performs: new Map() }),
      tools,
      GuardedFetch.layer,
      ResultStore.layerNone,
      Layer.effect(SharedLimits, Limits).pipe(Layer.provide(Limits.layerMemory)),
      ConfigProvider.layer(ConfigProvider.fromUnknown({}))
    ]))
  )
  const guardrail = Context.get(built, Guardrail)
  const providers = Context.get(built, Providers)

  const perform = Effect.fnUntraced(function*(
    operation: Operation,
    /** A form, bytes, or fields of JSON. */
    body: object,
    model = "guarded"
  ): Effect.fn.Return<Outcome> {
    const isRaw = body instanceof FormData || body instanceof Buffer
    const encoded = isRaw ? new Response(body) : Response.json({ model, ...body })
    const bytes = new Uint8Array(yield* Effect.promise(() => encoded.arrayBuffer()))
    const sink = new ClientSink()
    const checked: Record<string, string> = {}
    let cut: Usage | undefined
    const now = yield* Clock.currentTimeMillis
    const work: Work = {
      ...{ id: "job_1", operation, model, tenant: "key_1", owner: undefined, headers: {}, body: bytes, isPlain: false },
      contentType: body instanceof FormData ? encoded.headers.get("content-type") ?? "" : "application/json",
      ...{ deadline: now + 30_000, queuedMs: 0, commit: Effect.void },
      onCall: () => undefined,
      onCut: (usage) => void (cut = usage),
      onWait: () => () => undefined,
      onChecked: (direction, outcome) => {
        if (checked[direction] !== undefined) throw new Error(`two outcomes of the ${direction}`)
        checked[direction] = outcome
      }
    }
    const exit = yield* Effect.exit(guardrail.around(work, sink, providers.perform))
    return {
      head: sink.head,
      text: sink.text,
      error: Exit.isFailure(exit) ? exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error : undefined,
      checked,
      cut,
      usage: Exit.isSuccess(exit) ? exit.value : undefined
    }
  })
  return { hook, provider, perform }
})
