/** The environment of each process of a local start: its own settings, and no key of a provider that it does not call. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { ofProgram, ofService } from "../../../deploy/local/processes/Environment.ts"
import { parse } from "../../../shared/catalogue/Catalogue.ts"

const root = join(import.meta.dirname, "../../..")

const catalogue = Effect.runSync(parse(
  "gateway.yaml",
  `
providers:
  openai: { protocol: openai, baseUrl: "http://a/v1", apiKey: "\${OPENAI_API_KEY}" }
  odd: { protocol: openai, baseUrl: "http://a/v1", apiKey: "\${GATEWAY_ODD_KEY}" }
  fal: { protocol: ai-sdk, options: { package: x, settings: { headers: { authorization: "\${FAL_KEY}" } } } }
  file: { protocol: openai, baseUrl: "http://a/v1", apiKey: "\${file:/run/key}" }
models:
  a: { workload: chat, targets: [{ provider: openai }, { provider: file }] }
  b: { workload: embeddings, targets: [{ provider: openai }, { provider: odd }] }
  c: { workload: images, targets: [{ provider: fal }] }
`
))

const environment = {
  PATH: "/bin",
  LC_ALL: "C",
  OPENAI_API_KEY: "1",
  GATEWAY_ODD_KEY: "2",
  FAL_KEY: "3",
  AWS_REGION: "eu-central-1",
  GITHUB_TOKEN: "4",
  GATEWAY_SECRET: "5",
  GATEWAY_BOOTSTRAP_KEY: "6",
  GATEWAY_QUEUE_LIMIT: "7",
  CONSOLE_ADMIN_TOKEN: "8",
  WORKER_SLOTS: "9",
  LOG_LEVEL: "debug",
  OTEL_SDK_DISABLED: "true"
}

const namesFor = (service: string) => Object.keys(ofService(service, catalogue, environment)).toSorted()

describe("the environment of a local start", () => {
  it("of ingress, console and batches holds only the variables that they read", () => {
    const both = ["GATEWAY_QUEUE_LIMIT", "GATEWAY_SECRET", "LC_ALL", "LOG_LEVEL", "OTEL_SDK_DISABLED", "PATH"]
    assert.deepStrictEqual(namesFor("ingress"), both)
    assert.deepStrictEqual(namesFor("console"), ["CONSOLE_ADMIN_TOKEN", ...both])
    assert.deepStrictEqual(namesFor("batches"), [...both, "WORKER_SLOTS"])
  })

  it("of a worker holds everything except variables for other processes only", () => {
    const all = [
      "AWS_REGION",
      "GATEWAY_QUEUE_LIMIT",
      "GITHUB_TOKEN",
      "LC_ALL",
      "LOG_LEVEL",
      "OTEL_SDK_DISABLED",
      "PATH",
      "WORKER_SLOTS"
    ]
    const having = (...more: ReadonlyArray<string>) => [...all, ...more].toSorted()
    assert.deepStrictEqual(namesFor("chat"), having("GATEWAY_SECRET", "OPENAI_API_KEY"))
    assert.deepStrictEqual(namesFor("embeddings"), having("GATEWAY_ODD_KEY", "GATEWAY_SECRET", "OPENAI_API_KEY"))
    assert.deepStrictEqual(namesFor("images"), having("FAL_KEY", "GATEWAY_SECRET"))
    assert.deepStrictEqual(namesFor("rerank"), having("GATEWAY_SECRET"))
    assert.deepStrictEqual(namesFor("video"), having())
  })

  it("of another program holds only the essentials", () => {
    assert.deepStrictEqual(Object.keys(ofProgram(environment)).toSorted(), ["LC_ALL", "PATH"])
  })

  it("includes every variable that ingress and console read", () => {
    const read = ["ingress", "console"].flatMap((service) =>
      readdirSync(join(root, "services", service), { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts"))
        .flatMap((file) => {
          const text = readFileSync(join(root, "services", service, file), "utf8")
          const names = [...text.matchAll(/Config\.\w+\((?:[^()]*(?:\([^()]*\))?, )?"([A-Z][A-Z_]+)"\)/g)]
          return names.map(([, name = ""]) => ({ service, name }))
        })
    ).filter(({ name }) => name !== "PORT" && name !== "HOST")
    assert.isAbove(read.length, 5)
    for (const { name, service } of read) {
      assert.property(ofService(service, catalogue, { [name]: "x" }), name, service)
    }
  })
})
