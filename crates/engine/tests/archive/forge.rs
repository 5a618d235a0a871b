//! Archives made by hand, from what docs/format.md says of them and with nothing of piton's own encoder.

use piton_engine::model::conversation::{Began, Origin};
use piton_engine::model::diff::Counts;
use piton_engine::model::plan::RootState;
use piton_engine::model::record::{Checkpoint, Record};
use piton_engine::model::session::{Session, Step, StepRef, Turn, TurnEnd};
use piton_engine::model::tree::TreeEncoder;
use piton_engine::model::{Cause, CheckpointId, Ending, ObjectId, Rank, SessionId, Timestamp, TurnContext};
use serde_json::{Value, json};

/// An archive before it is written, each part of which may be wrong.
#[derive(Clone)]
pub struct Forge {
    pub version: u32,
    pub manifest: Value,
    pub objects: Vec<Object>,
    pub records: Vec<Value>,
    /// The number of the first record.
    pub first: u64,
}

/// One framed record, as the head says it and as it is.
#[derive(Clone)]
pub struct Object {
    pub kind: u8,
    pub id: [u8; 32],
    pub raw: Vec<u8>,
    /// What the head says of the length when unpacked, where that is a lie.
    pub said: Option<u32>,
    pub packed: bool,
}

pub const BLOB: u8 = 1;
pub const TREE: u8 = 2;
pub const CHUNKS: u8 = 3;

impl Object {
    pub fn blob(raw: impl Into<Vec<u8>>) -> Self {
        let raw = raw.into();
        Self { kind: BLOB, id: ObjectId::of_blob(&raw).0, raw, said: None, packed: false }
    }

    pub fn tree(raw: Vec<u8>) -> Self {
        Self { kind: TREE, id: ObjectId::of_tree(&raw).0, raw, said: None, packed: false }
    }

    /// The list of a large file's chunks, in order.
    pub fn list(chunks: &[&Object]) -> Self {
        let mut whole = Vec::new();
        let mut raw = Vec::new();
        for chunk in chunks {
            whole.extend_from_slice(&chunk.raw);
            raw.extend_from_slice(&chunk.id);
            raw.extend_from_slice(&(chunk.raw.len() as u32).to_le_bytes());
        }
        Self { kind: CHUNKS, id: ObjectId::of_blob(&whole).0, raw, said: None, packed: false }
    }

    pub fn id(&self) -> ObjectId {
        ObjectId(self.id)
    }

    fn bytes(&self) -> Vec<u8> {
        let payload = if self.packed { zstd::bulk::compress(&self.raw, 1).unwrap() } else { self.raw.clone() };
        let said = self.said.unwrap_or(self.raw.len() as u32);
        frame(self.kind, u8::from(self.packed), payload.len() as u32, said, &self.id, &payload)
    }
}

/// A record with its head, whose checksum is right whatever the head says.
pub fn frame(kind: u8, codec: u8, length: u32, raw: u32, id: &[u8; 32], payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"PiTn".to_vec();
    bytes.extend_from_slice(&[kind, codec, 0, 0]);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&raw.to_le_bytes());
    bytes.extend_from_slice(id);
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes);
    hasher.update(payload);
    bytes.extend_from_slice(&hasher.finalize().as_bytes()[..8]);
    bytes.extend_from_slice(payload);
    bytes
}

/// A folder with these files, all of one content.
pub fn listing(names: &[&[u8]], mode: u16, blob: &Object) -> Object {
    let mut tree = TreeEncoder::new(false);
    names.iter().for_each(|name| tree.file(name, mode, blob.raw.len() as u64, &blob.id()));
    Object::tree(tree.finish())
}

pub fn session(agent_id: &str) -> Session {
    Session {
        id: SessionId::of("test", agent_id),
        agent: "test".into(),
        agent_id: agent_id.into(),
        name: None,
        transcript: None,
        started_at: Timestamp(1_000),
        origin: None,
        rank: Rank::Plain,
        kept: None,
        along: false,
    }
}

pub fn branch(agent_id: &str, parent: &Session, turn: u32) -> Session {
    let (at, how) = (Timestamp(5_000), Began::Fork);
    let origin = Origin { parent: parent.id.clone(), turn, missing: 0, at, how, summary: None };
    Session { origin: Some(origin), ..session(agent_id) }
}

pub fn turn(session: &Session, number: u32, prompt: &str) -> Record {
    let at = Timestamp(2_000 + i64::from(number));
    let prompt = Some(prompt.to_owned());
    Record::Turn(Turn { session: session.id.clone(), number, prompt, prompt_id: None, at, mark: None })
}

pub fn turn_end(session: &Session, number: u32) -> Record {
    let at = Timestamp(3_000 + i64::from(number));
    Record::TurnEnded(TurnEnd { session: session.id.clone(), number, how: Ending::Done, message: None, at })
}

pub fn step(session: &Session, turn: u32, step: u32) -> Record {
    Record::Step(Step {
        at: StepRef { session: session.id.clone(), turn, step },
        call: None,
        tool: "Bash".into(),
        summary: "Bash make".into(),
        command: Some("make".into()),
        paths: Vec::new(),
        says: false,
        outside: Vec::new(),
        background: false,
        subagent: None,
        process: None,
        opened: 2_500_000_000,
        cwd: None,
        hooked: false,
        attended: piton_engine::model::session::Attended::No,
    })
}

pub fn checkpoint_id(number: u8) -> CheckpointId {
    CheckpointId::from_random([number; 8])
}

pub fn checkpoint(session: &Session, number: u8, turn: u32, tree: &Object) -> Checkpoint {
    Checkpoint {
        id: checkpoint_id(number),
        parent: None,
        line: 1,
        created_at: Timestamp(2_000 + i64::from(turn)),
        cause: Cause::Prompt,
        root: RootState { tree: tree.id(), mode: 0o755 },
        changes: Counts::default(),
        skipped: 0,
        unsettled: Vec::new(),
        operation: None,
        place: Some(TurnContext { session: session.id.clone(), turn, step: None }),
        description: None,
        owned: Vec::new(),
        git: None,
        held: Vec::new(),
        unagreed: Vec::new(),
        settings: Default::default(),
    }
}

impl Forge {
    /// A small archive that any piton takes: one file, one turn with one step, one checkpoint.
    pub fn sound(agent_id: &str) -> Self {
        let session = session(agent_id);
        let blob = Object::blob("hello\n");
        let tree = listing(&[b"a.txt"], 0o644, &blob);
        let mut forge = Self::empty(&session.id);
        forge.add(Record::Session(session.clone()));
        forge.add(turn(&session, 1, "hello there"));
        forge.add(Record::Checkpoint(checkpoint(&session, 1, 1, &tree)));
        forge.add(step(&session, 1, 1));
        forge.add(turn_end(&session, 1));
        forge.objects = vec![blob, tree];
        forge
    }

    pub fn empty(session: &SessionId) -> Self {
        let manifest = json!({"session": session, "piton": "0.1.0", "made_at": Timestamp(9_000)});
        Self { version: 1, manifest, objects: Vec::new(), records: Vec::new(), first: 1 }
    }

    pub fn add(&mut self, record: Record) {
        self.records.push(serde_json::to_value(record).unwrap());
    }

    /// The first record of a kind.
    pub fn record(&mut self, kind: &str) -> &mut Value {
        self.records.iter_mut().find(|record| record["record"] == kind).unwrap()
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.body();
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(b"PITONEND");
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    /// All but the end.
    pub fn body(&self) -> Vec<u8> {
        let mut bytes = b"PITONAR1".to_vec();
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend(timeline(&self.manifest));
        self.objects.iter().for_each(|object| bytes.extend(object.bytes()));
        for (record, seq) in self.records.iter().zip(self.first..) {
            let mut record = record.clone();
            if let (Value::Object(fields), false) = (&mut record, self.records.is_empty()) {
                fields.entry("seq").or_insert(json!(seq));
            }
            bytes.extend(timeline(&record));
        }
        bytes
    }
}

fn timeline(value: &Value) -> Vec<u8> {
    let json = serde_json::to_vec(value).unwrap();
    // Long ones only in tests of what is too long: those need not be written out.
    let packed = json.len() > 1 << 20;
    let payload = if packed { zstd::bulk::compress(&json, 1).unwrap() } else { json.clone() };
    frame(4, u8::from(packed), payload.len() as u32, json.len() as u32, &ObjectId::of_blob(&json).0, &payload)
}
