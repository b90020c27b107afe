package dev.nereid.http;

import dev.nereid.api.RequestedOutput;
import java.util.List;

/** The outputs that a request names, and how each is to be written. Immutable. */
final class RequestedOutputs {
    /** How an output comes back. */
    enum Form {
        /** As numbers or texts in the JSON. */
        JSON,
        /** As bytes behind the JSON. */
        BINARY,
        /** In memory that the client shares. */
        SHARED
    }

    private static final RequestedOutputs ALL_JSON = new RequestedOutputs(List.of(), List.of(), Form.JSON);
    private static final RequestedOutputs ALL_BINARY = new RequestedOutputs(List.of(), List.of(), Form.BINARY);

    private final List<RequestedOutput> wanted;
    private final List<Form> forms;
    private final Form formByDefault;

    private RequestedOutputs(List<RequestedOutput> wanted, List<Form> forms, Form formByDefault) {
        this.wanted = wanted;
        this.forms = forms;
        this.formByDefault = formByDefault;
    }

    /** Wants every output of the model, all written in one way. */
    static RequestedOutputs all(boolean binary) {
        return binary ? ALL_BINARY : ALL_JSON;
    }

    /** Wants some outputs, each in the form at the same place. Taken over as they are. */
    static RequestedOutputs of(List<RequestedOutput> wanted, List<Form> forms) {
        return new RequestedOutputs(wanted, forms, Form.JSON);
    }

    /** Returns the outputs wanted; empty for all. */
    List<RequestedOutput> wanted() {
        return wanted;
    }

    /** Says whether an output is wanted in memory that the client shares. */
    boolean areShared() {
        return forms.contains(Form.SHARED);
    }

    /** Returns how an output is to be written. */
    Form form(String name) {
        for (int i = 0; i < wanted.size(); i++) {
            if (wanted.get(i).name().equals(name)) {
                return forms.get(i);
            }
        }
        return formByDefault;
    }
}
