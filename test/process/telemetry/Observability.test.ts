/** Dashboards, alerts and the collector's configuration are correct and name nothing that does not exist. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parse } from "yaml"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"
import { BatchClient } from "../../fixture/batches/BatchClient.ts"
import { chat } from "../../fixture/client/ChatClient.ts"
import { detours, requestWithFallback, requestWithRetry, requestWithWait } from "../../fixture/client/Detours.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { HookServer } from "../../fixture/guardrail/HookServer.ts"
import * as Prometheus from "../../fixture/telemetry/Prometheus.ts"

const folder = join(import.meta.dirname, "../../../deploy/observability")
const read = (...path: ReadonlyArray<string>) => readFileSync(join(folder, ...path), "utf8")
const services = readdirSync(join(folder, "..", "..", "services"))
const guide = readFileSync(join(folder, "..", "README.md"), "utf8")
const dashboards = readdirSync(join(folder, "grafana"))
const rulesFile = join(folder, "prometheus", "rules.yaml")

/** Every metric in a text, by its name in the table. */
const metricsIn = (text: string): ReadonlyArray<string> => [
  ...new Set(
    [...text.matchAll(/gateway_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|count|sum)$/, ""))
  )
]

const named = [
  ...new Set([read("prometheus", "rules.yaml"), ...dashboards.map((file) => read("grafana", file))].flatMap(metricsIn))
]

interface Rules {
  readonly groups: ReadonlyArray<{
    readonly rules: ReadonlyArray<{
      readonly alert: string
      readonly expr: string
      readonly for: string
      readonly annotations: Record<string, string>
    }>
  }>
}
const alerts = (parse(read("prometheus", "rules.yaml")) as Rules).groups.flatMap(({ rules }) => rules)

/** The counters, some with labels, whose increase an alert watches. */
const watched = alerts.flatMap(({ expr }) => [...expr.matchAll(/increase\((.+?)\[/g)].map(([, series = ""]) => series))

interface CollectorConfig {
  readonly receivers: object
  readonly processors: { readonly tail_sampling: { readonly policies: ReadonlyArray<{ readonly name: string }> } }
  readonly exporters: object
  readonly service: {
    readonly pipelines: Record<string, Record<"receivers" | "processors" | "exporters", ReadonlyArray<string>>>
  }
}

/** The models, with one that has a shadow and one that has a guardrail. */
const gatewayWith = (guardrail: HookServer) => ({
  ...detours,
  models: `${detours.models}
  shadowed-chat: { workload: chat, shadow: { model: local-chat, share: 1 }, targets: [{ provider: free }] }
  guarded-chat: { workload: chat, guardrail: { url: "${guardrail.url}" }, targets: [{ provider: free }] }`
})

describe("dashboards and alerts", () => {
  it("name only metrics of the table, and together all of them", () => {
    assert.deepStrictEqual([...named].toSorted(), Metrics.table.map(({ name }) => name).toSorted())
  })

  it.for(dashboards)("%s is a dashboard whose panels do not overlap", (file) => {
    const { panels, uid } = JSON.parse(read("grafana", file)) as {
      readonly uid: string
      readonly panels: ReadonlyArray<
        { readonly title: string; readonly gridPos: Record<"x" | "y" | "w" | "h", number> }
      >
    }
    assert.strictEqual(uid, `gateway-${file.replace(".json", "")}`)
    const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + at % w} ${y + Math.floor(at / w)}`)
    )
    assert.lengthOf(new Set(cells), cells.length)
    assert.lengthOf(new Set(panels.map(({ title }) => title)), panels.length)
  })

  it("the guide agrees with the rule of every alert", () => {
    for (const { alert, annotations: { runbook = "", summary = "" } } of alerts) {
      assert.include(guide, `| \`${alert}\` | ${summary} | ${runbook.trim()} |`)
    }
  })

  it("every service is scraped", () => {
    const targets = [...read("prometheus", "prometheus.yaml").matchAll(/"([a-z]+):(\d+)"/g)]
    const scraped = targets.map(([, name]) => name)
    assert.deepStrictEqual([...new Set(targets.map(([, , port]) => port))], ["8081"])
    assert.sameMembers(scraped, services.filter((name) => name !== "admin"))
  })

  it("every alert has an action and a test", () => {
    const tests = read("prometheus", "rules.test.yaml")
    for (const { alert, annotations } of alerts) {
      assert.isAbove(annotations["summary"]?.length ?? 0, 20, alert)
      assert.isAbove(annotations["runbook"]?.length ?? 0, 40, alert)
      assert.include(tests, `name: ${alert}\n`)
    }
  })
})

describe("the collector's configuration", () => {
  it("uses all its definitions, and keeps errors, slow traces and a sample of the rest", () => {
    const { service, ...defined } = parse(read("otel-collector.yaml")) as CollectorConfig
    for (const pipeline of Object.values(service.pipelines)) {
      for (const kind of ["receivers", "processors", "exporters"] as const) {
        for (const component of pipeline[kind]) assert.property(defined[kind], component)
      }
    }
    const policies = defined.processors.tail_sampling.policies.map(({ name }) => name)
    assert.includeMembers(policies, ["errors", "slow", "share"])
    assert.include(service.pipelines["traces"]?.processors ?? [], "tail_sampling")
  })
})

describe.skipIf(Prometheus.missing !== undefined)(Prometheus.missing ?? "Prometheus", () => {
  it("accepts the rules and the configuration, and the rules pass their tests", async () => {
    assert.include(await Prometheus.promtool("check", "rules", rulesFile), `${alerts.length} rules found`)
    await Prometheus.promtool("check", "config", join(folder, "prometheus", "prometheus.yaml"))
    await Prometheus.promtool("test", "rules", join(folder, "prometheus", "rules.test.yaml"))
  })

  it.live("finds every metric of dashboards and alerts in the running services, and each counter before it increases", () =>
    Effect.scoped(
      Effect.flatMap(
        HookServer.make,
        (guardrail) =>
          Gateway.run(gatewayWith(guardrail), (gateway) =>
            Effect.runPromise(Effect.scoped(Effect.gen(function*() {
              const console = yield* Effect.promise(() => gateway.startConsole())
              const holder = yield* Effect.promise(() => gateway.startWorker({}, "batches"))
              const ports = [gateway.ingress, ...gateway.workers, holder, console].map(({ healthPort }) => healthPort)
              const api = yield* Prometheus.startPrometheus(ports, rulesFile)
              yield* Effect.promise(async () => {
                const behave = { kind: "malformed", after: 4 }
                await (await gateway.request(chat("free-chat", { stream: true, metadata: { behave } }))).text()
                for (const model of ["shadowed-chat", "guarded-chat"]) await (await gateway.request(chat(model))).text()
                gateway.provider.behaveOnce({ kind: "reset" })
                await (await gateway.request(chat("fallback-chat"))).text()
                await requestWithRetry(gateway)
                await requestWithFallback(gateway, "not today")
                await requestWithWait(gateway)
                gateway.provider.behaveOnce({ kind: "status", status: 429, retryAfterMs: 1 })
                await (await gateway.request(chat("narrow-chat"))).text()
                const batches = new BatchClient(gateway)
                await batches.ended((await batches.create("free-chat", 1)).id)
                const ask = async (path: string): Promise<unknown> => {
                  const answer = await fetch(`${api}/${path}`).catch(() => undefined)
                  // it is unavailable while it starts
                  return answer?.ok === true ? (await answer.json() as { readonly data: unknown }).data : undefined
                }
                const missing = async () => {
                  const names = await ask("label/__name__/values")
                  const known = new Set(Array.isArray(names) ? names.flatMap((name) => metricsIn(String(name))) : [])
                  return named.filter((name) => !known.has(name))
                }
                await eventually(missing, (names) => names.length === 0)
                // nothing here has expired or was lost, but Prometheus sees no increase in the first value of a series
                const unseen = async () => {
                  const found = await Promise.all(
                    watched.map((series) => ask(`query?query=${encodeURIComponent(series)}`))
                  )
                  return watched.filter((_, at) =>
                    (found[at] as { readonly result?: ReadonlyArray<unknown> })?.result?.[0] === undefined
                  )
                }
                await eventually(unseen, (series) => series.length === 0)
                const { groups } = await ask("rules") as {
                  readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<{ readonly lastError?: string }> }>
                }
                const rules = groups.flatMap(({ rules }) => rules)
                assert.lengthOf(rules, alerts.length)
                for (const { lastError } of rules) assert.isUndefined(lastError)
              })
            }))))
      )
    ))
})
