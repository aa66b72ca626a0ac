// @ts-check
/**
 * The types that the explorer's modules share; no code. Python's side of them is `scene.py` and `edits.py`.
 *
 * Shapes: H heads, T queries, S keys, V logits, N neurons of a feed-forward part.
 * Names: a head is `encoder.0.self.3`, its site `encoder.0.self`, a feed-forward part `encoder.0.feed`, a
 * layer `encoder.0`.
 *
 * @typedef {{shape: number[], data: Float32Array | Uint8Array}} Values
 *
 * @typedef {"input" | "answer" | "places"} Side
 * @typedef {{path: string, stack: string, layer: number, kind: "self" | "cross", heads: number,
 *   queries: "input" | "answer", keys: Side}} Site
 * @typedef {{path: string, parts: string[]}} Layer
 * @typedef {{path: string, hidden: number}} Feed
 * @typedef {{path: string, name: string}} Stream
 * @typedef {{rows: number, columns: number, front: number}} Patches
 * @typedef {{name: string, count: number | null}} Stratum  null until the examples have been answered
 * @typedef {{channels: number, height: number, width: number, rows: number, columns: number,
 *   ink: boolean}} ImageForm  cells are rows x columns; ink: one grey shape a cell, light on dark
 * @typedef {"zero" | "mean" | "resample"} Baseline
 *
 * @typedef {{kind: string, noun: string, input: "text" | "image" | "examples", placeholder: string,
 *   suggestions: string[], image: ImageForm | null, labels: string[], places: string[],
 *   answer: "class" | "sequence", note: string, splits: {[split: string]: Stratum[]},
 *   tour: TourStep[]}} TaskFacts
 * @typedef {{kind: string, parameters: number, sites: Site[], layers: Layer[], feeds: Feed[],
 *   streams: Stream[], patches: Patches | null}} ModelFacts
 * @typedef {{step: number, epoch?: number | null, accuracy?: number | null}} Snapshot
 * @typedef {{ablate: boolean, explain: boolean, heads: boolean, pictures: boolean,
 *   snapshots: boolean, findings: boolean}} Abilities
 * @typedef {{name: string, title: string, facts: [string, string][], task: TaskFacts, model: ModelFacts,
 *   snapshots: Snapshot[], baselines: Baseline[], abilities: Abilities,
 *   source: "server" | "widget" | "handout"}} Subject  what does not depend on the input
 *
 * @typedef {{text: string} | {example: {split: string, index: number}} | {pixels: Values}} Input
 * @typedef {{op: "off", at: string, to: Baseline}} Off
 * @typedef {{op: "scale", at: string, by: number}} Scale
 * @typedef {{op: "pattern", at: string, rows: {[query: string]: number[]}}} Painted
 * @typedef {{op: "swap", at: string}} Swap
 * @typedef {Off | Scale | Painted | Swap} Edit
 *
 * @typedef {{patterns: boolean | string[], guesses: boolean, neurons: string | null}} Want
 * @typedef {{input: Input, other: Input | null, edits: Edit[], snapshot: number | null,
 *   want: Want}} Question
 *
 * @typedef {{label: string, place: string, probability: number, top: [string, number][]}} AnswerToken
 * @typedef {{text: string, probability: number, correct: boolean | null,
 *   tokens: AnswerToken[]}} Answer  a class is one token
 * @typedef {{name: string, labels: string[], truth: string | null, pixels: Values | null}} ShownInput
 * @typedef {{path: string, values: Values}} Guess  values: (T, V)
 * @typedef {{path: string, values: Values}} Neurons  values: (T, N)
 * @typedef {{input: ShownInput, answer: Answer,
 *   labels: {input: string[], answer: string[], places: string[]}, patterns: {[site: string]: Values},
 *   guesses: Guess[], neurons: Neurons | null, seconds: number}} Scene  patterns: (H, T, S)
 *
 * @typedef {{name: string, title: string, task: string, accuracy: number | null}} RunEntry
 * @typedef {{index: number, name: string, truth: string | null, pixels: Values | null}} Example
 * @typedef {{split: string, stratum: string, start: number, count: number}} ExamplesWanted
 * @typedef {{analysis: "ablate" | "explain" | "heads", input: Input | null, examples: number | null,
 *   split: "valid" | "test", edits?: Edit[], other?: Input | null, snapshot?: number | null} | {analysis: "doctor"}} Job
 * @typedef {{title: string, columns: string[], rows: string[][]}} JobTable
 * @typedef {{title: string, sentences: string[], tables: JobTable[], figures: string[]}} JobResult
 * @typedef {{x_label: string, y_label: string, x: (number | null)[],
 *   lines: {name: string, values: (number | null)[]}[]}} Curve
 * @typedef {{kind: string, severity: "note" | "warning" | "serious", confidence: number, source: string,
 *   text: string, explained_by: string, evidence: [string, number | null][], curve: Curve | null,
 *   remedy: string, command: string, code: string, why: string}} Finding
 * @typedef {{findings: Finding[], checked: string, unchecked: [string, string][]}} Diagnosis
 *   the most likely finding first
 * @typedef {{result: Promise<JobResult | Diagnosis>, cancel: () => void}} Running
 *
 * @typedef {object} Port  where answers come from; rejects with an Error whose message is for people.
 *   An error with `lost: true` says that the connection is gone for now.
 * @property {() => Promise<RunEntry[]>} list
 * @property {(name: string) => Promise<Subject>} open
 * @property {(question: Question) => Promise<Scene>} ask
 * @property {(wanted: ExamplesWanted) => Promise<{total: number, items: Example[]}>} examples
 * @property {(bytes: Uint8Array) => Promise<Values>} read
 * @property {() => Promise<Diagnosis | null>} findings  what is kept of an earlier diagnosis
 * @property {(job: Job, onProgress: (done: number, total: number) => void) => Running} start
 * @property {() => void} close
 *
 * @typedef {{text?: string, input?: "given" | "pixels" | "example", edit?: {[key: string]: unknown},
 *   edits?: "none", head?: string, view?: ViewName, step?: "any", feed?: "any", other?: "given"}} Until
 *   what a step of the tour waits for: all of it has to hold; a head may be "any"
 * @typedef {{type: "draw", slot: "input" | "other", cells: [number, number][][][]}} DrawAction
 *   strokes of points in each cell
 * @typedef {{type: "find", split: string, stratum: string}} FindAction  the first example of a group becomes the input
 * @typedef {{title: string, text: string, target: string, until: Until, act: (Action | DrawAction | FindAction)[],
 *   facts: {[run: string]: string}}} TourStep  target: a data-name; words in brackets are in the glossary;
 *   a fact is true of the run that it is named after
 *
 * @typedef {"heads" | "guesses" | "neurons" | "ask" | "findings" | "about"} ViewName
 * @typedef {"edited" | "clean" | "change"} Showing  which patterns are drawn where there are edits
 * @typedef {{run: string, input: Input | null, other: Input | null, edits: Edit[], snapshot: number | null,
 *   head: string | null, view: ViewName, step: number | null, feed: string | null, to: Baseline,
 *   show: Showing}} State  all of it is in the URL; `to` is what takes the place of what is switched off
 * @typedef {{past: Edit[][], state: State, future: Edit[][], gesture: number | null}} History
 *
 * @typedef {{type: "open", run: string}
 *   | {type: "input", input: Input | null} | {type: "other", input: Input | null}
 *   | {type: "edit", edit: Edit, gesture?: number} | {type: "remove", index: number} | {type: "clear"}
 *   | {type: "undo"} | {type: "redo"}
 *   | {type: "choose", head: string | null} | {type: "view", view: ViewName}
 *   | {type: "step", step: number | null} | {type: "snapshot", step: number | null}
 *   | {type: "feed", feed: string | null} | {type: "baseline", to: Baseline}
 *   | {type: "show", show: Showing} | {type: "restore", state: State}} Action
 *   edits of one gesture, such as a stroke of the brush, are undone together
 *
 * @typedef {{side: Side, index: number}} Token  index: among the labels of its side
 * @typedef {{at: "run" | "input" | "other" | "edits", message: string, lost: boolean}} Trouble
 *
 * @typedef {object} Model  what views are functions of
 * @property {State} state
 * @property {Subject} subject
 * @property {Scene | null} clean
 * @property {Scene | null} edited  null where there are no edits
 * @property {Scene | null} other  the clean scene of the other input
 * @property {Diagnosis | null} diagnosis  null until somebody has asked for it
 * @property {boolean} busy
 * @property {Trouble | null} error
 * @property {Token | null} hover
 * @property {boolean} playing
 * @property {boolean} canUndo
 * @property {boolean} canRedo
 * @property {RunEntry[]} runs
 *
 * @typedef {object} App
 * @property {Port} port
 * @property {(action: Action) => void} dispatch
 * @property {(token: Token | null) => void} hover
 * @property {(text: string) => void} announce  says it to screen readers
 * @property {(text: string) => void} tell  says to everybody what has just happened
 * @property {(diagnosis: Diagnosis | null) => void} diagnosed  tells all views
 * @property {(on: boolean) => void} play
 * @property {() => Model | null} model  what was drawn last; null before a run is open
 * @property {HTMLElement} root
 *
 * @typedef {App & {slot: "input" | "other"}} InputApp  an input module dispatches `{type: app.slot, input}`
 *   and reads `model.state[app.slot]`; `model.error` concerns it where `error.at` is its slot
 *
 * @typedef {{element: HTMLElement, render: (model: Model) => void, destroy?: () => void}} View
 * @typedef {View & {take: (files: FileList | null) => void}} PictureView  takes the first of the files
 */
export {};
