package dev.nereid.server.response;

import dev.nereid.api.ModelRef;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Keeps the holders of responses: the models of a server, and the embedding program. Safe for use by any thread. */
public final class ResponseHolders {
    /** The most models that a reason names. */
    private static final int MAX_NAMED = 5;

    /** The minimum time between two collections. */
    private static final long COLLECTION_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** The most sentences that are kept. */
    private static final int MAX_SENTENCES = 100;

    private final Set<ResponseHolder> holders = ConcurrentHashMap.newKeySet();
    private final OpenResponses open = new OpenResponses();
    private final AtomicLong collectedNanos;
    private final List<String> forgotten = new CopyOnWriteArrayList<>();

    /** Creates a server's holders, of which there are none yet. */
    public ResponseHolders() {
        collectedNanos = new AtomicLong(System.nanoTime() - COLLECTION_NANOS);
    }

    /**
     * Adds one load of a model version.
     *
     * @param caller the key and the version of the model
     * @param model its name, for messages
     * @param plugin the name of its plugin, for messages
     * @param actions runs actions of the model on responses, never on the calling thread
     * @return the holder, to be closed when the model is
     */
    public ResponseHolder add(ModelRef caller, String model, String plugin, Executor actions) {
        return add(new ResponseHolder(this, Optional.of(caller), model, plugin, actions));
    }

    /**
     * Adds the program that embeds the server.
     *
     * @param actions runs its actions on responses, never on the calling thread
     * @return the holder, which is never closed: a stop of the server waits for the program's responses
     */
    public ResponseHolder addProgram(Executor actions) {
        return add(new ResponseHolder(this, Optional.empty(), "", "", actions));
    }

    private ResponseHolder add(ResponseHolder added) {
        holders.add(added);
        return added;
    }

    void remove(ResponseHolder holder) {
        holders.remove(holder);
    }

    OpenResponses open() {
        return open;
    }

    /**
     * Returns how many requests to one load of a model version have responses that are held.
     *
     * @param source the load, as of {@link dev.nereid.api.InferResponse#source}
     * @return the number of requests, each of which may have several responses
     */
    public long requestsOf(Object source) {
        return holders.stream().mapToLong(holder -> holder.requestsOf(source)).sum();
    }

    /** Returns whether any response, or a lease on an output of one, is held. */
    public boolean areHolding() {
        return holders.stream().anyMatch(holder -> holder.size() > 0);
    }

    /**
     * Returns how many responses of one load of a model version are held, without leases on their outputs.
     *
     * @param source the load, as of {@link dev.nereid.api.InferResponse#source}
     */
    public long responsesOf(Object source) {
        return holders.stream()
                .mapToLong(holder -> holder.responsesOf(List.of(source)))
                .sum();
    }

    /**
     * Returns how many responses of one load of a model version, and leases on their outputs, are held.
     *
     * @param source the load, as of {@link dev.nereid.api.InferResponse#source}
     */
    public long sizeOf(Object source) {
        return holders.stream()
                .mapToLong(holder -> holder.sizeOf(List.of(source)))
                .sum();
    }

    /**
     * Names the holders of responses of a model version. The version is not unloaded before they are closed.
     *
     * @param sources the loads of the version that are not closed
     * @return the reason; empty if none does
     */
    public String reason(Collection<?> sources) {
        TreeMap<String, Long> counts = new TreeMap<>();
        for (ResponseHolder holder : holders) {
            long count = holder.sizeOf(sources);
            if (count > 0) {
                counts.merge(holder.describe(), count, Long::sum);
            }
        }
        if (counts.isEmpty()) {
            return "";
        }
        int others = counts.size() - MAX_NAMED;
        return "waits for responses that are not closed: "
                + String.join(
                        ", ",
                        counts.entrySet().stream()
                                .limit(MAX_NAMED)
                                .map(entry -> entry.getValue() + " held by " + entry.getKey())
                                .toList())
                + (others > 0 ? ", and others" : "");
    }

    /**
     * Collects the heap to find the responses that plugins cannot reach any more, at most once a second. They are
     * released by other threads then. Takes as long as a collection of the heap.
     */
    public void findForgotten() {
        long now = System.nanoTime();
        long last = collectedNanos.get();
        if (now - last >= COLLECTION_NANOS && collectedNanos.compareAndSet(last, now)) {
            System.gc();
        }
    }

    /** Keeps a sentence about an object that a plugin has forgotten. */
    void forgot(String sentence) {
        if (forgotten.size() < MAX_SENTENCES) {
            forgotten.add(sentence);
        }
    }

    /**
     * Describes the objects that plugins have forgotten, and the server released.
     *
     * @return sentences as in the log, in the order in which they were found, about 100 at most
     */
    public List<String> forgotten() {
        return List.copyOf(forgotten);
    }

    /**
     * Finds the responses that hold the memory of tensors. So the memory stays while other models read it. Lock-free; safe
     * for use by any thread.
     */
    static final class OpenResponses {
        /** The outputs of open responses, by the addresses where they begin. */
        private final ConcurrentSkipListMap<Long, List<Output>> outputs = new ConcurrentSkipListMap<>();

        /** The bytes of the largest output so far: one that begins further below a tensor does not contain it. */
        private final AtomicLong largest = new AtomicLong();

        /** An output of a response. */
        private record Output(HeldResponse response, int index, long byteSize) {}

        void add(HeldResponse response, int index, Tensor tensor) {
            Output added = new Output(response, index, tensor.byteSize());
            if (largest.get() < added.byteSize()) {
                largest.accumulateAndGet(added.byteSize(), Math::max);
            }
            outputs.merge(tensor.data().address(), List.of(added), (before, more) -> {
                List<Output> all = new ArrayList<>(before);
                all.addAll(more);
                return List.copyOf(all);
            });
        }

        void remove(HeldResponse response, int index, Tensor tensor) {
            outputs.computeIfPresent(tensor.data().address(), (_, before) -> {
                List<Output> left = before.stream()
                        .filter(output -> !(output.response().equals(response) && output.index() == index))
                        .toList();
                return left.isEmpty() ? null : left;
            });
        }

        /**
         * Keeps the memory of a tensor in an output of an open response; returns the end of that. Empty for other
         * memory.
         */
        Optional<Runnable> keep(Tensor tensor) {
            if (!tensor.place().isHost()) {
                return Optional.empty();
            }
            long address = tensor.data().address();
            Map.Entry<Long, List<Output>> lower = outputs.floorEntry(address);
            // Outputs may lie in others, such as parts of a tensor that were passed on.
            while (lower != null && address - lower.getKey() + tensor.byteSize() <= largest.get()) {
                long end = address - lower.getKey() + tensor.byteSize();
                Optional<Runnable> lease = lower.getValue().stream()
                        .filter(output -> end <= output.byteSize())
                        .flatMap(output -> output.response().tryLease(output.index()).stream())
                        .findFirst();
                if (lease.isPresent()) {
                    return lease;
                }
                lower = outputs.lowerEntry(lower.getKey());
            }
            return Optional.empty();
        }
    }
}
