/** Edits a field of a form without touching its files. */
import { assert, describe, it } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { fileNames, names, setField, valueOf } from "../../../../shared/provider/protocols/openai/MultipartText.ts"

const encoded = async (form: FormData) => {
  const response = new Response(form)
  return { body: new Uint8Array(await response.arrayBuffer()), type: response.headers.get("content-type") ?? "" }
}

const decoded = (body: Uint8Array, type: string) =>
  new Response(body as Uint8Array<ArrayBuffer>, { headers: { "content-type": type } }).formData()

describe("a form", () => {
  it("gets another value of a field; files and other fields stay unchanged", async () => {
    const file = randomBytes(100_000)
    const form = new FormData()
    form.append("prompt", "name=\"model\"\r\n\r\nnot the model")
    form.append("model", "alias")
    form.append("image[]", new File([file], "a.png", { type: "image/png" }))
    form.append("image[]", new File(["model"], "model", { type: "image/png" }))
    const { body, type } = await encoded(form)
    const changed = setField(body, type, "model", "the-name-at-the-provider")
    assert.isDefined(changed)
    assert.strictEqual(changed.length, body.length + "the-name-at-the-provider".length - "alias".length)
    const after = await decoded(changed, type)
    assert.strictEqual(after.get("model"), "the-name-at-the-provider")
    assert.strictEqual(after.get("prompt"), form.get("prompt"))
    const [first, second] = after.getAll("image[]") as [File, File]
    assert.deepStrictEqual(Buffer.from(await first.arrayBuffer()), file)
    assert.strictEqual(await second.text(), "model")
    assert.strictEqual(second.name, "model")
  })

  it("is read in all notations of clients: quoted boundaries, names without quotes, text before the first part", async () => {
    const parts = (boundary: string) =>
      `preamble\r\n--${boundary}\r\nCONTENT-TYPE: text/plain\r\ncontent-disposition: form-data; name=model\r\n\r\nalias\r\n--${boundary}--\r\n`
    const changed = setField(Buffer.from(parts("a b")), "multipart/form-data; boundary=\"a b\"", "model", "x")
    assert.strictEqual(Buffer.from(changed ?? []).toString(), parts("a b").replace("alias", "x"))
    const other = setField(Buffer.from(parts("zz")), "multipart/form-data;charset=utf-8; boundary=zz", "model", "")
    assert.strictEqual(Buffer.from(other ?? []).toString(), parts("zz").replace("alias", ""))
  })

  it("lists the names of its texts, and those of its files", async () => {
    const form = new FormData()
    form.append("image[]", "data:image/png;base64,AAAA")
    form.append("image[]", new File(["x"], "a.png"))
    form.append("model", "x")
    const { body, type } = await encoded(form)
    assert.deepStrictEqual(names(body, type), ["image[]", "model"])
    assert.deepStrictEqual(fileNames(body, type), ["image[]"])
    assert.strictEqual(valueOf(body, type, "model"), "x")
    assert.isUndefined(valueOf(body, type, "prompt"))
    assert.isEmpty(names(body, "multipart/form-data"))
  })

  it("without the field, or without a boundary, is not edited", async () => {
    const form = new FormData()
    form.append("prompt", "x")
    form.append("model", new File(["x"], "model"))
    const { body, type } = await encoded(form)
    assert.isUndefined(setField(body, type, "model", "x"))
    assert.isUndefined(setField(body, "multipart/form-data", "prompt", "x"))
    assert.isUndefined(setField(new Uint8Array(0), type, "prompt", "x"))
  })
})
