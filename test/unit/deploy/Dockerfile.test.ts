/** The Dockerfile passes its linter, and copies nothing that `.dockerignore` excludes. */
import { assert, describe, it } from "@effect/vitest"
import { Copy, DockerfileParser } from "dockerfile-ast"
import { validate } from "dockerfile-utils"
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { bundle } from "../../../deploy/image/bundle.ts"
import { nodeFlagsOf } from "../../../shared/process/NodeFlags.ts"

const run = promisify(execFile)

const project = join(import.meta.dirname, "../../..")
const text = readFileSync(join(project, "deploy/Dockerfile"), "utf8")
const instructions = DockerfileParser.parse(text).getInstructions()

describe("the Dockerfile", () => {
  it("passes the linter", () => {
    assert.deepStrictEqual(validate(text), [])
  })

  it("pins each base image by version and digest", () => {
    const image = instructions.find((one) => one.getInstruction() === "ARG")?.getArgumentsContent()
    assert.match(image ?? "", /^NODE_IMAGE=docker\.io\/library\/node:\d+\.\d+\.\d+-[\w-]+@sha256:[0-9a-f]{64}$/)
    const bases = instructions.filter((one) => one.getInstruction() === "FROM").map((one) =>
      one.getArgumentsContent() ?? ""
    )
    const stages = bases.flatMap((base) => / AS (\S+)$/.exec(base)?.[1] ?? [])
    for (const base of bases) assert.include(["${NODE_IMAGE}", ...stages], base.replace(/ AS .*$/, ""))
  })

  it("starts each service with Node's options from the file beside its bundle", async () => {
    const entryPoint = instructions.find((one) => one.getInstruction() === "ENTRYPOINT")?.getArgumentsContent() ?? ""
    const [command = "", ...words] = JSON.parse(entryPoint)
    const folder = await mkdtemp(join(tmpdir(), "image-"))
    try {
      await bundle(join(folder, "bundles"))
      const script = "console.log(JSON.stringify([process.execArgv, process.argv.slice(2)]))"
      for (const service of ["ingress", "batches"]) {
        await writeFile(join(folder, `bundles/${service}.js`), script)
        const PATH = `${dirname(process.execPath)}:${process.env["PATH"]}`
        const started = await run(command, [...words, service, "a b"], { cwd: folder, env: { PATH } })
        assert.deepStrictEqual(JSON.parse(started.stdout), [nodeFlagsOf(service), ["a b"]])
      }
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it("copies only project files that .dockerignore includes", () => {
    const allowed = readFileSync(join(project, ".dockerignore"), "utf8").match(/^!.+$/gm)?.map((line) => line.slice(1))
    const copied = instructions
      .filter((one) => one instanceof Copy && one.getFromFlag() === null)
      .flatMap((one) => one.getArguments().slice(0, -1).map((argument) => argument.getValue()))
    const allowing = copied.map((path) => allowed?.find((one) => path === one || path.startsWith(`${one}/`)) ?? path)
    assert.deepStrictEqual([...new Set(allowing)].toSorted(), allowed?.toSorted())
  })
})
