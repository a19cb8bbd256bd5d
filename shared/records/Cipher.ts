/** Encrypts bytes with AES-256-GCM for one purpose and place, which are authenticated too. The format: nonce, ciphertext, tag. */
import { Option } from "effect"
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"

const cipher = "aes-256-gcm"
const nonceBytes = 12
const tagBytes = 16

/** How many bytes encryption adds. */
export const encryptionBytes = nonceBytes + tagBytes

/** Encrypts `plain`. `key` has 32 bytes; `about` names purpose and place. */
export const encrypt = (key: Uint8Array, about: string, plain: Uint8Array): Buffer => {
  const nonce = randomBytes(nonceBytes)
  const encryption = createCipheriv(cipher, key, nonce).setAAD(Buffer.from(about))
  return Buffer.concat([nonce, encryption.update(plain), encryption.final(), encryption.getAuthTag()])
}

/** Decrypts bytes; `None` if the key, `about` or any byte differs from the encryption. */
export const decrypt = (key: Uint8Array, about: string, bytes: Uint8Array): Option.Option<Buffer> => {
  if (bytes.length < nonceBytes + tagBytes) return Option.none()
  const decryption = createDecipheriv(cipher, key, bytes.subarray(0, nonceBytes))
    .setAAD(Buffer.from(about))
    .setAuthTag(bytes.subarray(-tagBytes))
  try {
    const plain = decryption.update(bytes.subarray(nonceBytes, -tagBytes))
    return Option.some(Buffer.concat([plain, decryption.final()]))
  } catch {
    return Option.none()
  }
}
