// @ts-check
/**
 * @typedef {{id: string | null, title: string, url?: string, content?: string, address?: string,
 *   last_modified?: string}} Source
 * @typedef {{label: string, status: string, answer_start: number, answer_end: number, document_id: string | null, url: string | null, title: string | null,
 *   field: string | null, start: number | null, end: number | null, quote: string | null, place?: string | null, page?: number | null,
 *   claim?: string, context?: string | null, match_start?: number | null, match_end?: number | null, missing?: string[], added?: string[]}} Citation
 * @typedef {{checked: number, verified: number, quoted: number, near: number, dropped: number, replaced: string | null}} Support
 * @typedef {{title: string, description: unknown, props: Record<string, any> | null}} Thought
 * @typedef {{message: string, documents: Source[], citations: Citation[], thoughts?: Thought[],
 *   finish_reason?: string, partial_results?: boolean, few_words?: boolean, other_language?: boolean, support?: Support, spent?: Spent}} Content
 * @typedef {{searches: number, modelCalls: number, inputTokens: number, outputTokens: number}} Spent
 * @typedef {{content: Content, model: string, id: string, followups?: string[] | null,
 *   firstMs?: number, wholeMs?: number, isFound?: boolean, tryAt?: number, progress?: {done: string, total: string} | undefined, skipped?: Skipped[]}} Answer
 * @typedef {{id: string, reason: string}} Skipped
 * @typedef {{role: string, content: string}} Message
 * @typedef {Record<string, any>} Words
 */
export {};
