package dev.nereid.scheduler.queue;

import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;

/** A sequence that ended on an instance without its last request. Immutable. */
public record EndedSequence(Sequence.Id id, SequenceEnd reason) {}
