package dev.nereid.repository.storage;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.storage.ModelStorage;
import dev.nereid.spi.storage.StoragePage;
import dev.nereid.spi.storage.StoredObject;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/** A storage in memory, whose failures a test chooses. Safe for use by any thread. */
final class FakeStorage implements ModelStorage {
    /** Keys of the objects that were read, in their order. */
    final List<String> reads = new CopyOnWriteArrayList<>();

    final AtomicInteger listings = new AtomicInteger();

    /** Runs before each read, with the key. */
    volatile Consumer<String> beforeRead = key -> {};

    /** Runs before each page of a listing, with its number. */
    volatile Consumer<Integer> beforeList = number -> {};

    /** How many bytes of an object are written before its read fails; negative for all, without a failure. */
    volatile int breakAfter = -1;

    /** How many of the next reads break. */
    final AtomicInteger breaks = new AtomicInteger();

    volatile int pageSize = 2;
    volatile boolean closed;

    private final NavigableMap<String, byte[]> contents = new ConcurrentSkipListMap<>();
    private final NavigableMap<String, StoredObject> objects = new ConcurrentSkipListMap<>();
    private final AtomicInteger seconds = new AtomicInteger();

    /** Stores an object; its time is later than that of all others. */
    FakeStorage put(String key, String text) {
        return put(key, text.getBytes(StandardCharsets.UTF_8));
    }

    FakeStorage put(String key, byte[] content) {
        String etag = "\"" + Integer.toHexString(Arrays.hashCode(content)) + "-" + content.length + "\"";
        contents.put(key, content.clone());
        objects.put(key, new StoredObject(key, content.length, etag, Instant.ofEpochSecond(seconds.incrementAndGet())));
        return this;
    }

    /** Lists an object as it is not. */
    FakeStorage list(StoredObject object) {
        contents.putIfAbsent(object.key(), new byte[0]);
        objects.put(object.key(), object);
        return this;
    }

    void remove(String key) {
        contents.remove(key);
        objects.remove(key);
    }

    boolean contains(String key) {
        return objects.containsKey(key);
    }

    StoredObject object(String key) {
        StoredObject object = objects.get(key);
        if (object == null) {
            throw new AssertionError("no object " + key);
        }
        return object;
    }

    @Override
    public StoragePage list(String prefix, String continuation) {
        beforeList.accept(listings.getAndIncrement());
        List<StoredObject> page = new ArrayList<>();
        for (StoredObject object : objects.tailMap(
                        continuation.isEmpty() ? prefix : continuation, continuation.isEmpty())
                .values()) {
            if (!object.key().startsWith(prefix)) {
                break;
            }
            if (page.size() == pageSize) {
                return new StoragePage(page, page.getLast().key());
            }
            page.add(object);
        }
        return StoragePage.last(page);
    }

    @Override
    public void read(StoredObject object, OutputStream content) {
        beforeRead.accept(object.key());
        reads.add(object.key());
        StoredObject present = objects.get(object.key());
        byte[] bytes = contents.get(object.key());
        if (present == null || bytes == null) {
            throw new BackendException(ErrorCode.NOT_FOUND, "gone");
        }
        if (!present.etag().equals(object.etag())) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "changed");
        }
        int end = bytes.length;
        boolean breaking = breakAfter >= 0 && breaks.getAndUpdate(left -> Math.max(0, left - 1)) > 0;
        if (breaking) {
            end = Math.min(end, breakAfter);
        }
        try {
            for (int start = 0; start < end; start += 3) {
                content.write(bytes, start, Math.min(3, end - start));
            }
        } catch (IOException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "a write failed", e);
        }
        if (breaking) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "connection lost");
        }
    }

    @Override
    public void close() {
        closed = true;
    }
}
