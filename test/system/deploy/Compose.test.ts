/** The compose file conforms to the specification, and has each of the gateway's services. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, delimiter, dirname, join } from "node:path"
import { parse } from "yaml"
import { imageFolder } from "../../fixture/gateway/Bundles.ts"

const project = join(import.meta.dirname, "../../..")
const text = readFileSync(join(project, "deploy/compose.yaml"), "utf8")

interface Service {
  readonly image: string
  readonly entrypoint?: ReadonlyArray<string>
  readonly command?: ReadonlyArray<string>
  readonly ports?: ReadonlyArray<string>
  readonly read_only?: boolean
  readonly build?: { readonly target: string }
  readonly environment?: Readonly<Record<string, string>>
  readonly networks?: ReadonlyArray<string>
}
const { services } = parse(text, { merge: true }) as { readonly services: Readonly<Record<string, Service>> }

/** The image's entry point, in which the first argument after it is `$0`. */
const imageEntrypoint = JSON.parse(
  /^ENTRYPOINT (.*)$/m.exec(readFileSync(join(project, "deploy/Dockerfile"), "utf8"))?.[1] ?? "[]"
) as ReadonlyArray<string>

/** Runs a service's command as in its container; returns exit code and output. */
const runAs = (name: string, command: ReadonlyArray<string>) => {
  const [program = "", ...words] = [...services[name]?.entrypoint ?? imageEntrypoint, ...command]
  const PATH = [dirname(process.execPath), process.env["PATH"]].join(delimiter)
  return spawnSync(program, words, { encoding: "utf8", cwd: imageFolder(), env: { PATH } })
}

/** The compose file, and others with one mistake each. */
const variants: Readonly<Record<string, string>> = {
  "as it is": text,
  "a field that does not exist": text.replace("read_only: true", "readonly: true"),
  "a value of the wrong type": text.replace("read_only: true", "read_only: [1]")
}

/** The linter's errors in each of them: violations of the specification, and contradictions. One run takes a second. */
const lint = (): Readonly<Record<string, unknown>> => {
  const folder = mkdtempSync(join(tmpdir(), "compose-"))
  try {
    for (const [name, source] of Object.entries(variants)) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, "compose.yaml"), source)
    }
    const words = [
      join(project, "node_modules/dclint/bin/dclint.cjs"),
      "--quiet",
      "--recursive",
      "--formatter",
      "json",
      folder
    ]
    const { stdout } = spawnSync(process.execPath, words, { encoding: "utf8", cwd: folder })
    const found = JSON.parse(stdout) as ReadonlyArray<{ readonly filePath: string; readonly messages: unknown }>
    return Object.fromEntries(found.map(({ filePath, messages }) => [basename(dirname(filePath)), messages]))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe("the compose file", () => {
  it("conforms to the specification, and would not with a mistake", () => {
    const [own, ...broken] = Object.keys(variants)
    const found = lint()
    assert.isUndefined(found[own!])
    assert.sameMembers(Object.keys(found), broken)
  })

  it("runs each service of the gateway, named after its folder, on a read-only root", () => {
    for (const name of readdirSync(join(project, "services"))) {
      const service = services[name] ?? assert.fail(`${name} is missing`)
      if (name === "admin") assert.deepStrictEqual(service.entrypoint, ["node", "bundles/admin.js"])
      else assert.strictEqual(service.command?.[0], name)
      assert.isTrue(service.read_only, name)
      const measure = join(project, `deploy/kubernetes/base/${name}/measure.yaml`)
      const image = /^image: (.*)$/m.exec(readIfThere(measure))?.[1] ?? "model-gateway"
      assert.strictEqual(service.image, image, name)
      assert.strictEqual(service.build?.target, image === "model-gateway" ? "core" : "media", name)
    }
  })

  it("runs the administrator's command in its first comment", () => {
    const [, name = "", words = ""] = /^# .* run --rm (\S+) (.+)$/m.exec(text) ?? assert.fail("there is none")
    const { status, stderr, stdout } = runAs(name, [...words.split(" "), "--help"])
    assert.strictEqual(status, 0, stderr)
    assert.include(stdout, `admin ${words.split(" --")[0]}`)
  })

  it("gives each container its variables: no provider key, and the secret only where services sign or seal with it", () => {
    const having = (variable: string) =>
      Object.keys(services).filter((name) => services[name]?.environment?.[variable] !== undefined).toSorted()
    assert.deepStrictEqual(having("GATEWAY_SECRET"), [
      "batches",
      "chat",
      "console",
      "embeddings",
      "images",
      "ingress",
      "rerank",
      "speech"
    ])
    assert.deepStrictEqual(having("CONSOLE_ADMIN_TOKEN"), ["console"])
    for (const [name, { environment = {} }] of Object.entries(services)) {
      for (const variable of Object.keys(environment)) {
        if (name !== "grafana" && name !== "jaeger") assert.notMatch(variable, /API_KEY/, name)
      }
    }
  })

  it("publishes ports on this machine only, and NATS not at all", () => {
    for (const { ports = [] } of Object.values(services)) {
      for (const port of ports) assert.match(port, /^127\.0\.0\.1:/)
    }
    assert.deepStrictEqual(services["nats"]?.networks, ["bus"])
    assert.isUndefined(services["nats"]?.ports)
  })

  it("pins every third-party image by version and digest", () => {
    for (const { build, image } of Object.values(services)) {
      if (build === undefined) assert.match(image, /:v?\d+\.\d+\.\d+(-\w+)?@sha256:[0-9a-f]{64}$/)
    }
  })
})

const readIfThere = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}
