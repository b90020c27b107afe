package dev.nereid.backend.python.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameTensor;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * The memory of a process in Python, in this process: maps the segments that it gets, and checks the frames of the server.
 * Guarded by its monitor.
 */
final class FakeProcess implements FrameSink {
    record Slot(int segment, long offset) {}

    record Mapped(int number, long size, long slotSize, boolean outgoing, MemorySegment memory, Arena arena) {}

    final Map<Integer, Mapped> segments = new TreeMap<>();
    /** Incoming slots that this process has, with the size of their tensors. */
    final Map<Slot, Long> lent = new HashMap<>();
    /** Outgoing slots that are not free. */
    final Map<Slot, Long> used = new HashMap<>();

    final List<Slot> released = new ArrayList<>();
    final List<Long> refused = new ArrayList<>();
    final List<Integer> removed = new ArrayList<>();
    int releaseFrames;

    @Override
    public synchronized void send(FrameWriter writer) {
        MemorySegment bytes = writer.frame();
        assertThat(FrameReader.lengthAt(bytes, 0)).isEqualTo(bytes.byteSize());
        FrameReader frame = new FrameReader().of(bytes, 0, bytes.byteSize());
        switch (frame.type()) {
            case FrameType.SEGMENT -> map(frame);
            case FrameType.SEGMENT_REFUSED -> refused.add(frame.id());
            case FrameType.SEGMENT_REMOVE -> {
                Mapped segment = segments.remove((int) frame.id());
                assertThat(segment.outgoing()).isFalse();
                assertThat(lent.keySet()).noneMatch(slot -> slot.segment() == segment.number());
                segment.arena().close();
                removed.add(segment.number());
            }
            case FrameType.RELEASE -> {
                releaseFrames++;
                for (int i = 0; i < frame.count(); i++) {
                    int segment = (int) frame.u32("segment");
                    frame.u32("zero");
                    Slot slot = new Slot(segment, frame.u64("offset"));
                    assertThat(used.remove(slot)).as("%s", slot).isNotNull();
                    released.add(slot);
                }
            }
            default -> throw new AssertionError("frame " + frame.type());
        }
    }

    private void map(FrameReader frame) {
        int number = (int) frame.id();
        long size = frame.u64("size");
        long slotSize = frame.u64("slot size");
        Path path = Path.of(frame.text("path"));
        assertThat(number).isPositive();
        assertThat(segments).doesNotContainKey(number);
        assertThat(size % Math.max(slotSize, 4096)).isZero();
        Arena arena = Arena.ofShared();
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            assertThat(file.size()).isEqualTo(size);
            MemorySegment memory = file.map(MapMode.READ_WRITE, 0, size, arena);
            segments.put(number, new Mapped(number, size, slotSize, frame.flags() == 1, memory, arena));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Takes a tensor that a frame of the server names. */
    synchronized Slot take(int segment, long offset, long size) {
        Slot slot = new Slot(segment, offset);
        assertThat(segments.get(segment).outgoing()).isFalse();
        assertThat(offset % 64).isZero();
        assertThat(lent.put(slot, size)).isNull();
        return slot;
    }

    synchronized MemorySegment memory(Slot slot, long size) {
        return segments.get(slot.segment()).memory().asSlice(slot.offset(), size);
    }

    /** Ends the use of incoming slots, and returns the frame. */
    synchronized FrameReader release(List<Slot> slots) {
        slots.forEach(slot -> assertThat(lent.remove(slot)).isNotNull());
        return releasedFrame(slots);
    }

    static FrameReader releasedFrame(List<Slot> slots) {
        FrameWriter writer = new FrameWriter().begin(FrameType.RELEASED, 0, slots.size(), 0);
        slots.forEach(slot -> writer.u32(slot.segment()).u32(0).u64(slot.offset()));
        return reader(writer);
    }

    static FrameReader reader(FrameWriter writer) {
        MemorySegment frame = writer.end().frame();
        return new FrameReader().of(frame, 0, frame.byteSize());
    }

    /** Gives an outgoing slot out, if one of the size is free. */
    synchronized Slot give(long slotSize, long size) {
        for (Mapped segment : segments.values()) {
            for (long offset = 0; segment.slotSize() == slotSize && offset < segment.size(); offset += slotSize) {
                Slot slot = new Slot(segment.number(), offset);
                if (!used.containsKey(slot)) {
                    used.put(slot, size);
                    return slot;
                }
            }
        }
        throw new IllegalStateException("no slot");
    }

    synchronized boolean hasFree(long slotSize) {
        return segments.values().stream()
                .filter(segment -> segment.slotSize() == slotSize)
                .anyMatch(segment -> used.keySet().stream()
                                .filter(slot -> slot.segment() == segment.number())
                                .count()
                        < segment.size() / slotSize);
    }

    /** Unmaps the outgoing segments without a slot in use, and returns their numbers. */
    synchronized List<Integer> returnIdle() {
        List<Integer> idle = new ArrayList<>();
        for (Mapped segment : segments.values()) {
            if (segment.outgoing() && used.keySet().stream().noneMatch(slot -> slot.segment() == segment.number())) {
                idle.add(segment.number());
            }
        }
        idle.forEach(number -> segments.remove(number).arena().close());
        return idle;
    }

    /** Ends the process. */
    synchronized void end() {
        segments.values().forEach(segment -> segment.arena().close());
        segments.clear();
    }

    synchronized long byteSize() {
        return segments.values().stream().mapToLong(Mapped::size).sum();
    }

    static FrameTensor tensor(long segment, long offset, long size) {
        return new FrameTensor(0, DataType.UINT8, Shape.of(size), size, segment, offset, size, MemorySegment.NULL);
    }

    static FrameTensor tensor(Slot slot, long size) {
        return tensor(slot.segment(), slot.offset(), size);
    }

    /** Writes a pattern that begins and ends with the seed. */
    static void fill(MemorySegment memory, byte seed) {
        long size = memory.byteSize();
        for (long i = 0; i < size; i += 509) {
            memory.set(ValueLayout.JAVA_BYTE, i, (byte) (seed + i));
        }
        memory.set(ValueLayout.JAVA_BYTE, size - 1, seed);
    }

    static void check(MemorySegment memory, byte seed) {
        long size = memory.byteSize();
        for (long i = 0; i < size - 1; i += 509) {
            if (memory.get(ValueLayout.JAVA_BYTE, i) != (byte) (seed + i)) {
                throw new AssertionError("byte " + i + " of " + size + " has changed");
            }
        }
        assertThat(memory.get(ValueLayout.JAVA_BYTE, size - 1)).isEqualTo(seed);
    }

    /** Returns the number of mappings and of descriptors of segments in this process. */
    static long mappingsAndDescriptors() {
        long count = 0;
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"));
                Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
            count += lines.filter(line -> line.contains("memfd:nereid-tensors")).count();
            for (Path descriptor : descriptors.toList()) {
                try {
                    if (Files.readSymbolicLink(descriptor).toString().contains("memfd:nereid-tensors")) {
                        count++;
                    }
                } catch (IOException e) {
                    // Closed meanwhile: that of the directory itself, or another thread's.
                }
            }
            return count;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
