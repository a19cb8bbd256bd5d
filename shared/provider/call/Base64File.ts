/** Reads files that requests and answers hold as text: data URLs, and bare base64. */

const dataUrl = /^data:[^,]{0,200};base64,/i
const base64 = /^[A-Za-z0-9+/_-]+={0,2}\s*$/

export const isDataUrl = (text: string): boolean => dataUrl.test(text)

/** The text without what precedes the base64 of a data URL. */
const encodedIn = (text: string): string => text.replace(dataUrl, "")

/** The bytes of a data URL, or of bare base64, without a check of its characters. */
export const bytesIn = (text: string): Buffer<ArrayBuffer> => Buffer.from(encodedIn(text), "base64")

/** Whether the text is a data URL or bare base64, and not empty. */
export const isFile = (text: string): boolean => base64.test(encodedIn(text))
