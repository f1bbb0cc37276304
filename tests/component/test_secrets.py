#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""C262: a secret that was given to the node, or by it, is in no answer to a GET, no event and no
line of the log."""
import base64
import hashlib
import os
import sqlite3
import subprocess
import unittest

import api as api_module
import node
from api import Api
from shapes import KINDS, SOURCE_KINDS_NOTE
