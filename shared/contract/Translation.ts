/** How a client says what is to become of a request that its model's provider can serve only in part. */

/** A header of chat requests. Its one value, `strict`, turns every loss of a translation into an error. */
export const translationHeader = "x-translation"

export const strictTranslation = "strict"
