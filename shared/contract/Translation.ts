/** The header by which a client chooses how to treat fields that the model's provider does not support. */

/** A header of chat requests. Its only value, `strict`, turns every loss of a translation into an error. */
export const translationHeader = "x-translation"

export const strictTranslation = "strict"
