package dev.nereid.server.control;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.file.ServerPaths;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.ModelLocation;
import dev.nereid.repository.ModelRepository;
import dev.nereid.server.lifecycle.ModelEntry;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.spi.ErrorCode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lists the known models and, if clients control loads, the other models in the repository. Safe for use by any thread.
 *
 * <p>One list is read at a time, on a virtual thread, since the repository may be slow. Requests that arrive meanwhile
 * share the next list, so that each sees all earlier changes, and none waits for more than two lists.
 */
final class RepositoryIndex {
    private static final Logger LOG = LoggerFactory.getLogger(RepositoryIndex.class);

    private final ServedModels models;
    private final Optional<ModelRepository> repository;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private boolean reading;

    @GuardedBy("lock")
    private @Nullable CompletableFuture<List<ModelStatus>> next;

    /**
     * Creates the index of a server.
     *
     * @param repository a repository with further models to be listed; empty for none
     */
    RepositoryIndex(ServedModels models, Optional<ModelRepository> repository) {
        this.models = models;
        this.repository = repository;
    }

    /** Reads the index. Never blocks. */
    CompletionStage<List<ModelStatus>> read() {
        CompletableFuture<List<ModelStatus>> list;
        boolean starts;
        lock.lock();
        try {
            starts = !reading;
            reading = true;
            list = next == null ? new CompletableFuture<>() : next;
            next = starts ? null : list;
        } finally {
            lock.unlock();
        }
        if (starts) {
            Thread.ofVirtual().name("index").start(() -> readAll(list));
        }
        return list.minimalCompletionStage();
    }

    private void readAll(CompletableFuture<List<ModelStatus>> first) {
        CompletableFuture<List<ModelStatus>> list = first;
        while (list != null) {
            try {
                list.complete(now());
            } catch (InferenceException e) {
                list.completeExceptionally(e);
            } catch (RuntimeException | Error e) {
                LOG.atError().setCause(e).log("index of the repository failed");
                list.completeExceptionally(
                        new InferenceException(ErrorCode.INTERNAL, ServerPaths.namesAlone("internal error: " + e, "")));
            }
            list = waiting();
        }
    }

    /** Takes the list that others wait for; without one, no list is read. */
    private @Nullable CompletableFuture<List<ModelStatus>> waiting() {
        lock.lock();
        try {
            CompletableFuture<List<ModelStatus>> list = next;
            next = null;
            reading = list != null;
            return list;
        } finally {
            lock.unlock();
        }
    }

    private List<ModelStatus> now() {
        if (repository.isEmpty()) {
            return models.index();
        }
        Map<String, ModelEntry> before = new HashMap<>();
        models.keys().forEach(key -> models.find(key).ifPresent(entry -> before.put(key, entry)));
        return withPresent(repository.get().scan(), before);
    }

    private List<ModelStatus> withPresent(ModelRepository.Scan scan, Map<String, ModelEntry> before) {
        NavigableMap<String, ModelStatus> present = new TreeMap<>(ModelKey.ORDER);
        scan.duplicates().forEach(key -> present.put(key, unknown(key)));
        for (ModelLocation model : scan.models()) {
            String problem = scan.unreachable().get(model.repository());
            present.put(model.key(), problem == null ? unknown(model.key()) : unreachable(model.key(), problem));
        }
        if (scan.unreachable().isEmpty()) { // otherwise the removed models are not known
            before.forEach((key, entry) -> {
                if (!present.containsKey(key)) {
                    forgetFailures(key, entry);
                }
            });
        }
        NavigableMap<String, List<ModelStatus>> index = models.indexByKey();
        present.forEach((key, status) -> index.putIfAbsent(key, List.of(status)));
        return index.values().stream().flatMap(List::stream).toList();
    }

    /** Forgets the failure of a removed model, unless a version of it serves or it was loaded since. */
    private void forgetFailures(String key, ModelEntry before) {
        if (before.ready().isEmpty()) {
            models.update(key, entry -> before.equals(entry) ? before.gone() : entry);
        }
    }

    private static ModelStatus unknown(String key) {
        return new ModelStatus(ModelKey.name(key), OptionalLong.empty(), ModelStatus.State.UNKNOWN, "");
    }

    private static ModelStatus unreachable(String key, String problem) {
        return new ModelStatus(ModelKey.name(key), OptionalLong.empty(), ModelStatus.State.UNAVAILABLE, problem);
    }
}
