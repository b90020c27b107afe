package dev.nereid.server.dependency;

import java.util.IdentityHashMap;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Answers a question about a graph of models once for each model. Many paths may lead to a model. Immutable; safe for
 * use by any thread.
 *
 * <p>The answers are known within the outermost question, on the thread that asks it.
 *
 * @param <T> the answer
 */
public final class ReadinessQuestion<T> {
    private final ScopedValue<Map<Object, T>> answers = ScopedValue.newInstance();

    /**
     * Answers the question about one model.
     *
     * @param model the model, by identity
     * @param answering finds the answer, and asks about other models; not called if it is known
     */
    public T ask(Object model, Supplier<T> answering) {
        if (!answers.isBound()) {
            return ScopedValue.where(answers, new IdentityHashMap<>()).call(() -> ask(model, answering));
        }
        Map<Object, T> known = answers.get();
        T answer = known.get(model);
        if (answer == null) {
            answer = answering.get();
            known.put(model, answer);
        }
        return answer;
    }
}
