package dev.nereid.server.response;

import static java.util.Objects.requireNonNull;
import static java.util.stream.Collectors.joining;

import dev.nereid.api.InferResponse;
import dev.nereid.api.ModelRef;
import dev.nereid.scheduler.handle.ForgottenCount;
import dev.nereid.scheduler.handle.PluginHandles;
import dev.nereid.server.response.HeldResponse.HeldLease;
import dev.nereid.spi.Tensor;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.spi.LoggingEventBuilder;

/**
 * Holds responses of models, for one load of a model version or the embedding program. Safe for use by any thread.
 *
 * <p>A response that is not closed keeps the model that responded from being unloaded. The holder releases responses
 * that its plugin or program cannot reach any more, and all when its model is closed.
 */
public final class ResponseHolder {
    /** The place of one request in this many is recorded, until a response is forgotten; then every place is. */
    static final int PLACE_INTERVAL = 128;

    /** The most models that a message names. */
    private static final int MAX_MODELS = 5;

    private static final Logger LOG = LoggerFactory.getLogger(ResponseHolder.class);

    private final ResponseHolders all;
    private final Optional<ModelRef> caller;
    private final String model;
    private final String plugin;
    private final Executor actions;
    private final Set<HeldResponse> held = ConcurrentHashMap.newKeySet();
    private final Set<HeldLease> leases = ConcurrentHashMap.newKeySet();
    private final AtomicLong requests = new AtomicLong();
    private final ForgottenCount forgotten = new ForgottenCount();
    private final ForgottenCount forgottenLeases = new ForgottenCount();

    private volatile boolean closed;

    /** A request that was sent. Equal to itself alone. */
    public static final class Sent {
        private final @Nullable Throwable place;

        private Sent(@Nullable Throwable place) {
            this.place = place;
        }

        /** Returns where it was sent; {@code null} if that was not recorded. */
        @Nullable
        Throwable place() {
            return place;
        }
    }

    /** The place where a model sent a request. Its stack begins in the plugin. */
    private static final class Place extends Throwable {
        private static final long serialVersionUID = 1;

        Place() {
            super("a request was sent");
        }
    }

    /**
     * Creates a holder without responses.
     *
     * @param caller the key and the version of the model; empty for the program
     * @param model its name, for messages
     * @param plugin the name of its plugin, for messages
     * @param actions runs actions of the model on responses, never on the calling thread
     */
    ResponseHolder(ResponseHolders all, Optional<ModelRef> caller, String model, String plugin, Executor actions) {
        this.all = all;
        this.caller = requireNonNull(caller, "caller");
        this.model = model;
        this.plugin = plugin;
        this.actions = actions;
    }

    /** Returns key and version of the model; empty for the program. */
    public Optional<ModelRef> caller() {
        return caller;
    }

    /** Returns the executor of the model's actions on responses, which never uses the calling thread. */
    public Executor actions() {
        return actions;
    }

    /** Counts a request that the calling thread sends; returns it for {@link #add}. */
    public Sent sends() {
        boolean isSample = requests.getAndIncrement() % PLACE_INTERVAL == 0;
        return new Sent(isSample || forgotten.needsPlace() || forgottenLeases.needsPlace() ? new Place() : null);
    }

    /** Returns whether the model has sent requests to others, by {@link #sends}. */
    public boolean isUsed() {
        return requests.get() > 0;
    }

    /**
     * Adds a response.
     *
     * @param response the response, owned by the result
     * @param request its request, as of {@link #sends}
     * @return the response, held until it is closed; {@code null} if the model is closed, so that nothing may read it
     */
    public @Nullable HeldResponse add(InferResponse response, Sent request) {
        HeldResponse added = new HeldResponse(this, response, all.open(), request);
        held.add(added);
        if (closed) {
            added.release();
            return null;
        }
        return added;
    }

    /** Adds a lease on an output; empty if the model is closed, and the lease ended. */
    Optional<HeldLease> add(HeldLease lease) {
        leases.add(lease);
        if (closed) {
            lease.end();
            return Optional.empty();
        }
        return Optional.of(lease);
    }

    /**
     * Keeps the memory of a tensor that lies in an output of a response that any model holds.
     *
     * @param tensor any tensor
     * @return ends that; empty if it lies in none
     */
    public Optional<Runnable> keep(Tensor tensor) {
        return all.open().keep(tensor);
    }

    void remove(HeldResponse response) {
        held.remove(response);
    }

    void remove(HeldLease lease) {
        leases.remove(lease);
    }

    /** Returns model, version and plugin, or the program, for messages. */
    String describe() {
        return caller.map(
                        calling -> "model '" + model + "', version " + calling.version() + ", plugin '" + plugin + "'")
                .orElse("the program");
    }

    /** Returns how many responses and leases the model holds, without ended and forgotten ones. */
    public int size() {
        return held.size() + leases.size();
    }

    /** Returns how many responses of some loads, and leases on their outputs, it holds. */
    long sizeOf(Collection<?> sources) {
        return responsesOf(sources)
                + leases.stream()
                        .filter(lease -> sources.contains(lease.source()))
                        .count();
    }

    /** Returns how many responses of some loads it holds. */
    long responsesOf(Collection<?> sources) {
        return held.stream()
                .filter(response -> sources.contains(response.source()))
                .count();
    }

    /** Returns how many requests have responses of a load, or leases on their outputs, that it holds. */
    long requestsOf(Object source) {
        return Stream.concat(
                        held.stream()
                                .filter(response -> response.source().equals(source))
                                .map(HeldResponse::request),
                        leases.stream()
                                .filter(lease -> lease.source().equals(source))
                                .map(HeldLease::request))
                .distinct()
                .count();
    }

    /** Releases a response that nothing reaches any more, on a thread for actions of the plugin. */
    void forgotten(HeldResponse response) {
        if (held.contains(response)) {
            actions.execute(() -> response.release(() -> report(response)));
        }
    }

    /** Ends a lease that nothing reaches any more, likewise. */
    void forgotten(HeldLease lease) {
        if (leases.contains(lease)) {
            actions.execute(() -> lease.release(() -> report(lease)));
        }
    }

    private void report(HeldResponse response) {
        if (forgotten.add(response.place()) > 0) {
            reportResponses("a response of model '" + response.model() + "' was", response.place());
        }
    }

    private void report(HeldLease lease) {
        if (forgottenLeases.add(lease.place()) > 0) {
            reportLeases("a lease on an output of model '" + lease.model() + "' was", lease.place());
        }
    }

    /**
     * Releases all responses, ends all leases, and reports how many were forgotten before, since the model is closed. Later
     * calls do nothing.
     */
    public void close() {
        boolean isFirst = !closed;
        closed = true;
        all.remove(this);
        releaseAll();
        endLeases();
        if (isFirst && forgotten.total() > 0) {
            reportResponses(forgotten.total() + " responses of models in all were", null);
        }
        if (isFirst && forgottenLeases.total() > 0) {
            reportLeases(forgottenLeases.total() + " leases on outputs of models in all were", null);
        }
    }

    /**
     * Releases the responses that the model holds, and reports them. Leases stay: the model may have passed on the
     * outputs that they keep.
     */
    public void releaseAll() {
        List<HeldResponse> released =
                held.stream().filter(HeldResponse::release).toList();
        if (!released.isEmpty()) {
            reportResponses(describe(released), firstOf(released.stream().map(HeldResponse::place)));
        }
    }

    /**
     * Ends the leases that the model holds, and reports them. The model has no response that was made of the outputs
     * that they keep.
     */
    public void endLeases() {
        List<HeldLease> ended =
                leases.stream().filter(lease -> lease.release(() -> {})).toList();
        if (!ended.isEmpty()) {
            boolean isOne = ended.size() == 1;
            reportLeases(
                    ended.size()
                            + (isOne ? " lease on an output" : " leases on outputs")
                            + models(ended.stream().map(HeldLease::model))
                            + (isOne ? " was" : " were"),
                    firstOf(ended.stream().map(HeldLease::place)));
        }
    }

    private static @Nullable Throwable firstOf(Stream<@Nullable Throwable> places) {
        return places.filter(Objects::nonNull).findFirst().orElse(null);
    }

    /** Returns how many responses of which models. */
    private static String describe(List<HeldResponse> responses) {
        return responses.size()
                + (responses.size() == 1 ? " response" : " responses")
                + models(responses.stream().map(HeldResponse::model))
                + (responses.size() == 1 ? " was" : " were");
    }

    private static String models(Stream<String> names) {
        List<String> models = names.distinct().toList();
        return " of model"
                + (models.size() == 1 ? " " : "s ")
                + models.stream().limit(MAX_MODELS).collect(joining("', '", "'", "'"))
                + (models.size() > MAX_MODELS ? " and others" : "");
    }

    /**
     * Reports senders or leases that the plugin has forgotten, and that the server ends.
     *
     * @param kind the kind of the forgotten objects
     * @param number how many the plugin has forgotten so far
     * @param place where it got one of them; {@code null} if that was not recorded
     */
    public void forgotten(PluginHandles.Kind kind, long number, @Nullable Throwable place) {
        boolean isOne = number == 1;
        String ended = isOne ? " was not ended, and the server ended it" : " were not ended, and the server ended them";
        String what = switch (kind) {
            case SENDER ->
                (isOne ? "a sender of a request" : number + " senders of requests") + ended
                        + " (expected: ResponseSender.complete or fail)";
            case LEASE ->
                (isOne ? "a lease on the inputs of a request" : number + " leases on the inputs of requests")
                        + ended
                        + " (expected: to run what InferenceRequest.leaseInputs returned)";
        };
        log(describe() + ": " + what, place);
    }

    private void reportResponses(String what, @Nullable Throwable place) {
        report(what, "ModelResponse.close, such as by try-with-resources", place);
    }

    private void reportLeases(String what, @Nullable Throwable place) {
        log(
                describe() + ": " + what + " not ended, and the server ended "
                        + (what.endsWith("was") ? "it" : "them")
                        + " (expected: to run what ModelResponse.lease returned)",
                place);
    }

    /**
     * Logs that the plugin or the program has forgotten an object, and keeps the sentence for tests.
     *
     * @param what names the object, with "was" or "were", such as {@code "a response of model 'm' was"}
     * @param expected the call that releases it
     * @param place where it was created; {@code null} if that was not recorded
     */
    public void report(String what, String expected, @Nullable Throwable place) {
        String sentence = describe() + ": " + what
                + " not closed, and the server released "
                + (what.endsWith("was") ? "it" : "them")
                + " (expected: " + expected + ")";
        log(sentence, place);
    }

    private void log(String sentence, @Nullable Throwable place) {
        all.forgot(sentence);
        LoggingEventBuilder event = LOG.atWarn().setCause(place);
        if (caller.isPresent()) {
            event = event.addKeyValue("model", model)
                    .addKeyValue("version", caller.get().version())
                    .addKeyValue("plugin", plugin);
        }
        event.log("{}{}", sentence, place == null ? "" : "; the stack shows where " + place.getMessage());
    }
}
