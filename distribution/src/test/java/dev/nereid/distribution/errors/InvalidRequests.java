package dev.nereid.distribution.errors;

import static dev.nereid.distribution.testing.TensorBytes.floats;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Repository;
import java.util.List;
import java.util.stream.Stream;

/**
 * The defects of inference requests that the protocol's description lists, in its order. Each has the expected error
 * text; the models of the requests are here, too.
 *
 * <p>Two rows are not here: the type of a sequence's id, which is checked against models that are scheduled by
 * sequence, and the state of the server, which does not depend on a request.
 */
final class InvalidRequests {
    static final String VECTOR = "vector";
    static final String PAIR = "pair";
    static final String CHOICE = "choice";
    static final String WORDS = "words";
    static final String FLAT = "flat";
    static final String STREAM = "stream";
    static final String BROKEN = "broken";

    private InvalidRequests() {}

    static List<InvalidRequest> all() {
        return Stream.concat(MalformedRequests.all(), UnservableRequests.all()).toList();
    }

    /** Returns a request that is right. */
    static ClientRequest good() {
        return ClientRequest.of(VECTOR).input("INPUT0", "FP32", floats(1, 2, 3, 4), 1, 4);
    }

    /** Creates the models of the requests. */
    static Repository models(Repository repository) {
        String pair = "backend: \"identity\"\nmax_batch_size: 8\n"
                + "input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 16 ] },"
                + " { name: \"INPUT1\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n"
                + "output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 16 ] },"
                + " { name: \"OUTPUT1\" data_type: TYPE_INT32 dims: [ 16 ] } ]\n";
        String choice = "backend: \"identity\"\nmax_batch_size: 8\n"
                + "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1, 2 ] },"
                + " { name: \"INPUT1\" data_type: TYPE_STRING dims: [ 1 ] optional: true } ]\n"
                + "output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1, 2 ] },"
                + " { name: \"OUTPUT1\" data_type: TYPE_STRING dims: [ 1 ] } ]\n";
        String never = "parameters [ { key: \"execute_delay_ms\" value: { string_value: \"never\" } } ]\n";
        return repository
                .model(VECTOR, Repository.identity(64, "FP32", "[ -1 ]", "dynamic_batching { }\n"))
                .model(PAIR, pair)
                .model(CHOICE, choice)
                .model(WORDS, Repository.identity(8, "STRING", "[ -1 ]", ""))
                .model(FLAT, Repository.identity(0, "FP32", "[ -1 ]", ""))
                .model(
                        STREAM,
                        Repository.identity(0, "FP32", "[ 4 ]", "model_transaction_policy { decoupled: true }\n"))
                .model(BROKEN, Repository.identity(0, "FP32", "[ 4 ]", never));
    }
}
