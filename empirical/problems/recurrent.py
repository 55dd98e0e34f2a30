"""Long short-term memory over sequences, for many parameter vectors at once."""

from __future__ import annotations

from torch import Tensor, baddbmm


def last_hidden(weight: Tensor, bias: Tensor, sequences: Tensor) -> Tensor:
    r"""The last hidden state of an LSTM, which can be differentiated twice.

    $$(i,f,g,o)_t = W\,(a_t, h_{t-1}) + b,\qquad c_t = \sigma(f_t)\,c_{t-1} + \sigma(i_t)\tanh(g_t),\qquad
    h_t = \sigma(o_t)\tanh(c_t),$$

    from $h_0 = c_0 = 0$; gates in torch's order, its two biases as one.

    Source: Hochreiter & Schmidhuber 1997, with the forget gates of Gers, Schmidhuber & Cummins 2000.
    """
    b, batch, steps, features = sequences.shape
    driven = baddbmm(bias.unsqueeze(1), sequences.flatten(1, 2), weight[..., :features].mT)
    recurrent = weight[..., features:].mT
    hidden = cell = sequences.new_zeros(b, batch, recurrent.shape[1])
    for added in driven.view(b, batch, steps, -1).permute(2, 0, 1, 3).contiguous():
        i, f, g, o = baddbmm(added, hidden, recurrent).chunk(4, -1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
    return hidden
