/** How a client says what to do with fields that the model's provider cannot serve. */

/** A header of chat requests. Its only value, `strict`, turns every loss of a translation into an error. */
export const translationHeader = "x-translation"

export const strictTranslation = "strict"
